// Quantities as people write and read them.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

#include "base/random.h"
#include "base/text.h"

namespace interlock::quantity_test {
namespace {

using Dimension = WrittenQuantity::Dimension;

struct Written {
  const char* text;
  double value;
  Dimension dimension;
};

TEST_CASE("every unit is read as its SI value, to the last bit") {
  for (const Written& written : std::initializer_list<Written>{
           {"3 us", 3e-6, Dimension::Time},
           {"0.1 ns", 1e-10, Dimension::Time},
           {"1.5 ms", 1.5e-3, Dimension::Time},
           {"0 s", 0, Dimension::Time},
           {"2 min", 120, Dimension::Time},
           {"2 h", 7200, Dimension::Time},
           {"1 d", 86400, Dimension::Time},
           {"-3 us", -3e-6, Dimension::Time},
           {"7 B", 7, Dimension::Size},
           {"1 kB", 1e3, Dimension::Size},
           {"1 KiB", 1024, Dimension::Size},
           {"80 GB", 80e9, Dimension::Size},
           {"80 GiB", 85899345920.0, Dimension::Size},
           {"1 TiB", 1099511627776.0, Dimension::Size},
           {"450 GB/s", 450e9, Dimension::Bandwidth},
           {"1 GiB/s", 1073741824.0, Dimension::Bandwidth},
           {"8 b/s", 1, Dimension::Bandwidth},
           {"8 kb/s", 1e3, Dimension::Bandwidth},
           {"200 Gb/s", 25e9, Dimension::Bandwidth},
           {"1.6 Tb/s", 200e9, Dimension::Bandwidth},
           {"989 TFLOP/s", 989e12, Dimension::FlopRate},
           {"1 EFLOP/s", 1e18, Dimension::FlopRate},
           {"1e3 GB", 1e12, Dimension::Size},
           {"80GiB", 85899345920.0, Dimension::Size},
           {"1EFLOP/s", 1e18, Dimension::FlopRate},
       }) {
    CAPTURE(written.text);
    const auto quantity = parse_quantity(written.text);
    REQUIRE(quantity.has_value());
    CHECK(quantity->value == written.value);
    CHECK(quantity->dimension == written.dimension);
  }
}

TEST_CASE("what is no finite number with a known unit is not read") {
  for (const char* text :
       {"",       "80",    "GiB",    "80 gib",  "80 GIB",   "80 KB",   "1 Gb",  "1 GBps", "1 GB /s",
        "inf s",  "nan s", "-inf s", "1e999 s", "1e308 PB", " 1 s",    "1 s ",  "1 s s",  "+1 s",
        "0x10 B", "1,5 s", "1 sec",  "1 Ms",    "1 TFLOPS", "1 TFLOP", "1\t s", "1 s\n",  "1 \xff",
        "--1 s",  "1 k",   "one s",  "1 mb/s",  "1 GIB/s",  "s 1",     "1 s/s", "1 B\\s"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_quantity(text).has_value());
  }
}

TEST_CASE("times are shown with three digits in the largest unit that leaves at least 1") {
  CHECK(format(Seconds(0)) == "0 s");
  CHECK(format(Seconds(0.00183)) == "1.83 ms");
  CHECK(format(Seconds(-0.00183)) == "-1.83 ms");
  CHECK(format(Seconds(1e-6)) == "1.00 us");
  CHECK(format(Seconds(999.4e-6)) == "999 us");
  CHECK(format(Seconds(999.6e-6)) == "1.00 ms");
  CHECK(format(Seconds(0.25e-9)) == "0.250 ns");
  CHECK(format(Seconds(59.97)) == "60.0 s");
  CHECK(format(Seconds(90)) == "1.50 min");
  CHECK(format(Seconds(5400)) == "1.50 h");
  CHECK(format(Seconds(86400)) == "1.00 d");
  CHECK(format(Seconds(86400 * 1234.0)) == "1234 d");
}

TEST_CASE("sizes are shown in powers of 1024, rates in powers of 1000") {
  CHECK(format(Bytes(0)) == "0 B");
  CHECK(format(Bytes(512)) == "512 B");
  CHECK(format(Bytes(1023)) == "1023 B");
  CHECK(format(Bytes(1024)) == "1.00 KiB");
  CHECK(format(Bytes(74.5 * 1073741824)) == "74.5 GiB");
  CHECK(format(BytesPerSecond(300e9)) == "300 GB/s");
  CHECK(format(BytesPerSecond(0)) == "0 B/s");
  CHECK(format(FlopsPerSecond(412e12)) == "412 TFLOP/s");
  CHECK(format(FlopsPerSecond(0)) == "0 FLOP/s");
}

TEST_CASE("what is shown can be read again, within the half unit of its third digit") {
  Random random(1, 0);
  for (int i = 0; i < 2000; ++i) {
    const double value = std::pow(10.0, -9 + 24 * random.uniform());
    for (const std::string& shown :
         {format(Seconds(value)), format(Bytes(value)), format(BytesPerSecond(value)),
          format(FlopsPerSecond(value))}) {
      CAPTURE(value);
      CAPTURE(shown);
      const auto quantity = parse_quantity(shown);
      REQUIRE(quantity.has_value());
      CHECK(std::abs(quantity->value / value - 1) <= 0.00501);
    }
  }
}

TEST_CASE("percentages have one decimal") {
  CHECK(format_percent(0.1234) == "12.3%");
  CHECK(format_percent(0) == "0.0%");
  CHECK(format_percent(-1e-5) == "0.0%");
  CHECK(format_percent(-0.002) == "-0.2%");
  CHECK(format_percent(1) == "100.0%");
}

TEST_CASE("plain numbers have three digits and thousands") {
  CHECK(format_number(0) == "0");
  CHECK(format_number(12) == "12");
  CHECK(format_number(12.345) == "12.3");
  CHECK(format_number(999.6) == "1.00 k");
  CHECK(format_number(1520) == "1.52 k");
  CHECK(format_number(-1520) == "-1.52 k");
  CHECK(format_number(2.5e9) == "2.50 G");
  CHECK(format_number(0.0123) == "0.0123");
}

}  // namespace
}  // namespace interlock::quantity_test
