// SourceSum: which sources a program was compiled from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Returns "interlock-sources-", then the SHA-256 of the sources that compute, as hex digits. The
/// program has it, and so has the engine of an offline page, by whose bytes it can be found.
extern "C" const char* interlock_source_sum();
