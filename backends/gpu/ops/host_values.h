// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic on the host (engine/host_value.h): one function for each operator whose row has one.
#pragma once

#include "engine/host_value.h"

namespace backplane::gpu::on_host {

std::optional<HostValue> shape(const HostCall& call);
std::optional<HostValue> size(const HostCall& call);
std::optional<HostValue> identity(const HostCall& call);
std::optional<HostValue> reshape(const HostCall& call);
std::optional<HostValue> squeeze(const HostCall& call);
std::optional<HostValue> unsqueeze(const HostCall& call);
std::optional<HostValue> expand(const HostCall& call);
std::optional<HostValue> slice(const HostCall& call);
std::optional<HostValue> concat(const HostCall& call);
std::optional<HostValue> gather(const HostCall& call);
std::optional<HostValue> constant_of_shape(const HostCall& call);
std::optional<HostValue> range(const HostCall& call);
std::optional<HostValue> cast(const HostCall& call);
std::optional<HostValue> add(const HostCall& call);
std::optional<HostValue> sub(const HostCall& call);
std::optional<HostValue> mul(const HostCall& call);
// Div and Mod, only for nodes whose divisors are constants other than 0. The device computes the result for a divisor
// of 0.
bool divides_by_constants(const sdk::Node& node);
std::optional<HostValue> div(const HostCall& call);
std::optional<HostValue> mod(const HostCall& call);
std::optional<HostValue> min(const HostCall& call);
std::optional<HostValue> max(const HostCall& call);
std::optional<HostValue> equal(const HostCall& call);
std::optional<HostValue> where(const HostCall& call);

}  // namespace backplane::gpu::on_host
