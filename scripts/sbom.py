#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The components of a build's Debian packages, as SPDX 2.3 JSON on standard output.

sbom.py BUILD PACKAGE.deb...

For each package: its digest, the packages that it needs when it runs (its Depends). For all of them together: what was compiled in,
the Debian packages that own the headers that the compiler read, as ninja recorded them. The time is $SOURCE_DATE_EPOCH.
"""
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def headers(build):
    """The system's headers that objects of the build depend on."""
    return sorted({os.path.realpath(line.strip()) for line in output("ninja", "-C", build, "-t", "deps").splitlines()
                   if line.startswith("    /usr/include/") or line.startswith("    /usr/lib/")})


def owners(files):
    """The Debian packages that the files belong to, by name, with versions."""
    names = set()
    for begin in range(0, len(files), 500):
        # Files that no package owns (of a venv, of /usr/local) only make dpkg's exit status 1, which is not checked.
        found = subprocess.run(["dpkg", "-S", *files[begin:begin + 500]], capture_output=True, text=True, check=False).stdout
        for line in found.splitlines():
            names.update(re.sub(r":\w+$", "", name) for name in line.split(": ")[0].split(", "))
    return {name: versions(name) for name in sorted(names) if versions(name)}


def versions(name):
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Version}\n", name], capture_output=True, text=True, check=False).stdout
    return shown.splitlines()[0] if shown else ""


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def package(name, version, **more):
    return {"SPDXID": identifier(name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", **more}


def debian(name, version):
    return package(name, version, externalRefs=[{
        "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:deb/debian/{name}@{version}"}])


def main():
    build, debs = sys.argv[1], sorted(sys.argv[2:])
    own, needed, relations = {}, {}, []
    compiled_in = owners(headers(build))
    for deb in debs:
        with open(deb, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        fields = dict(line.split(": ", 1) for line in output("dpkg-deb", "-f", deb, "Package", "Version", "Depends").splitlines())
        name = fields["Package"]
        own[name] = package(name, fields["Version"], packageFileName=os.path.basename(deb), licenseDeclared="Apache-2.0",
                            checksums=[{"algorithm": "SHA256", "checksumValue": digest}])
        for need in filter(None, fields.get("Depends", "").split(", ")):
            other = re.split(r"[ (|]", need)[0]
            needed[other] = versions(other)
            relations.append((name, "DEPENDS_ON", other))
        if any(re.search(r"/lib/|/bin/|/libexec/", line.split()[-1]) and line[0] == "-"
               for line in output("dpkg-deb", "-c", deb).splitlines()):
            relations += [(other, "BUILD_DEPENDENCY_OF", name) for other in compiled_in]
    others = {**compiled_in, **needed}
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    body = json.dumps([sorted(own), relations, [own[name]["checksums"] for name in sorted(own)]])
    version = next(iter(own.values()))["versionInfo"]
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"backplane-{version}",
        "documentNamespace": "urn:sha256:" + hashlib.sha256(body.encode()).hexdigest(),
        "creationInfo": {"created": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: backplane-sbom"]},
        "packages": [own[name] for name in sorted(own)] + [debian(name, others[name]) for name in sorted(others) if name not in own],
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": identifier(name)}
                          for name in sorted(own)] +
                         [{"spdxElementId": identifier(a), "relationshipType": kind, "relatedSpdxElement": identifier(b)}
                          for a, kind, b in sorted(set(relations))]}
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
