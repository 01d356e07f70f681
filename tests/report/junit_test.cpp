#include "holdfast/report/junit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::report {
namespace {

using ::testing::HasSubstr;

TEST(Junit, CountsFailuresAndNamesTheValues) {
  const Json results =
      Json::parse(R"json({"title": "a & b", "rows": [{"model": "m", "explainer": "e", "attack": "er"}, {}], "gates": [
    {"gate": "top_k(k=8)>=0.6", "limit": 0.6, "met": false, "rows": [{"row": 0, "value": 0.25, "met": false}, {"row": 1, "value": 0.9, "met": true}]},
    {"gate": "top_k(k=8)<2", "met": true, "rows": []}]})json");
  const std::string xml = junit_xml(results);
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"a &amp; b\" tests=\"2\" failures=\"1\">"));
  EXPECT_THAT(xml, HasSubstr("name=\"top_k(k=8)&gt;=0.6\""));
  EXPECT_THAT(xml, HasSubstr("not met: m, e, er: 0.2500\""));
}

TEST(Junit, AnyTitleGivesWellFormedXml) {
  const std::string xml = junit_xml({{"title",
                                      "a\x01"
                                      "b\tc\n<d>&\"e\""},
                                     {"rows", Json::array()},
                                     {"gates", Json::array()}});
  EXPECT_THAT(xml, ::testing::HasSubstr("name=\"a\xef\xbf\xbd"
                                        "b&#9;c&#10;&lt;d&gt;&amp;&quot;e&quot;\""));
}

}  // namespace
}  // namespace holdfast::report
