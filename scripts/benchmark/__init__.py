# SPDX-License-Identifier: Apache-2.0
"""The parts of scripts/bench.py: rows, the two sides that run them, floors, the loader's overhead, and the report."""
