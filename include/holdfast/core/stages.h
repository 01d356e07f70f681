// The namespaces of the stages, in the order of the data's way through the program. What `core` has is in `holdfast` itself. A
// stage sees the names of all stages before it without their prefix. Its own names hide theirs: two stages may each have a type
// of one name, and neither is taken for the other.
#pragma once

namespace holdfast {

namespace data {}
namespace model {
using namespace data;
}
namespace explain {
using namespace model;
}
namespace metric {
using namespace explain;
}
namespace attack {
using namespace metric;
}
namespace measure {
using namespace attack;
}
namespace train {
using namespace measure;
}
namespace experiment {
using namespace train;
}
namespace report {
using namespace experiment;
}
namespace cli {
using namespace report;
}
namespace python {
using namespace report;
}

}  // namespace holdfast
