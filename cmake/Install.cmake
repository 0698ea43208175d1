# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where. The CMake package and the pkg-config file are made in api/.
