#pragma once

#include <string>

#include "holdfast/experiment/audit.h"

namespace holdfast {

// manifest.json of an audit (docs/run-folder.md). `plan.stages` holds the time of everything that was done.
Json manifest_json(const AuditPlan& plan, const std::string& started, double seconds);

}  // namespace holdfast
