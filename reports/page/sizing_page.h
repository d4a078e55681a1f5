// SizingPage: what interlock plan found as a page, and as curves over the number of devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "reports/charts/line_chart.h"
#include "scenarios/starter/sizing.h"

namespace interlock {

/// Returns a curve for each machine: time, cost and the rate of a device over the devices. Grey
/// lines show the time if twice the devices took half of it. REQUIRES: there are several sizes.
LineChart sizing_chart(const Sizing& sizing);

/// Returns the recommendation, the table, the curves and every plan as markup. `leads`: points of
/// the curves lead to the section of their row, see page_picture.h.
std::string sizing_markup(const Sizing& sizing, bool leads);

/// Returns the page: the recommendation, the table, the curves, and every plan.
std::string sizing_html(const Sizing& sizing);

}  // namespace interlock
