// SPDX-License-Identifier: Apache-2.0
// Search runs in a worker and fetches its index, which browsers refuse to pages opened from the disk: there it is left out.
if (location.protocol === "file:")
  for (const part of document.querySelectorAll('[data-target="#mkdocs_search_modal"], #mkdocs_search_modal')) part.remove();
