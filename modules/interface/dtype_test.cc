#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.base;
import gridbuf.interface;

namespace gridbuf {
namespace {

// The spellings of NumPy 2.4 on 64-bit Linux, and DLPack's.
struct Spelling {
  std::string_view name;
  std::string_view typestr;
  std::string_view format;  // "" where there is none
  std::int64_t itemsize_bytes;
  int dlpack_code;  // -1 where there is none
  int dlpack_bits;
};

constexpr std::array<Spelling, 28> kSpellings{{
    {"bool", "|b1", "?", 1, 6, 8},
    {"int8", "|i1", "b", 1, 0, 8},
    {"int16", "<i2", "h", 2, 0, 16},
    {"int32", "<i4", "i", 4, 0, 32},
    {"int64", "<i8", "l", 8, 0, 64},
    {"uint8", "|u1", "B", 1, 1, 8},
    {"uint16", "<u2", "H", 2, 1, 16},
    {"uint32", "<u4", "I", 4, 1, 32},
    {"uint64", "<u8", "L", 8, 1, 64},
    {"float16", "<f2", "e", 2, 2, 16},
    {"float32", "<f4", "f", 4, 2, 32},
    {"float64", "<f8", "d", 8, 2, 64},
    {"longdouble", "<f16", "g", 16, -1, 0},
    {"complex64", "<c8", "Zf", 8, 5, 64},
    {"complex128", "<c16", "Zd", 16, 5, 128},
    {"clongdouble", "<c32", "Zg", 32, -1, 0},
    {"bfloat16", "<V2", "", 2, 4, 16},
    {"float8_e3m4", "|V1", "", 1, 7, 8},
    {"float8_e4m3", "|V1", "", 1, 8, 8},
    {"float8_e4m3b11fnuz", "|V1", "", 1, 9, 8},
    {"float8_e4m3fn", "|V1", "", 1, 10, 8},
    {"float8_e4m3fnuz", "|V1", "", 1, 11, 8},
    {"float8_e5m2", "|V1", "", 1, 12, 8},
    {"float8_e5m2fnuz", "|V1", "", 1, 13, 8},
    {"float8_e8m0fnu", "|V1", "", 1, 14, 8},
    {"float6_e2m3fn", "|V1", "", 1, 15, 6},
    {"float6_e3m2fn", "|V1", "", 1, 16, 6},
    {"float4_e2m1fn", "|V1", "", 1, 17, 4},
}};

DType named(std::string_view name) { return *DType::from_name(name); }

std::string format_of(const DType& type) { return type.format() == nullptr ? "" : type.format(); }

class DTypeSpelling : public ::testing::TestWithParam<Spelling> {};

TEST_P(DTypeSpelling, IsTheTables) {
  const Spelling& spelling = GetParam();
  const DType type = named(spelling.name);
  EXPECT_EQ(type.name(), spelling.name);
  EXPECT_EQ(type.typestr(), spelling.typestr);
  EXPECT_EQ(format_of(type), spelling.format);
  EXPECT_EQ(type.itemsize_bytes(), spelling.itemsize_bytes);
  EXPECT_EQ(type.descr(), "[('', '" + std::string(spelling.typestr) + "')]");
  EXPECT_TRUE(type.is_native());
  const absl::StatusOr<DlpackType> dlpack = type.dlpack();
  if (spelling.dlpack_code < 0) {
    EXPECT_EQ(error_class_of(dlpack.status()), ErrorClass::kBuffer);
    return;
  }
  ASSERT_TRUE(dlpack.ok()) << dlpack.status();
  EXPECT_EQ(*dlpack, (DlpackType{static_cast<std::uint8_t>(spelling.dlpack_code),
                                 static_cast<std::uint8_t>(spelling.dlpack_bits), 1}));
}

TEST_P(DTypeSpelling, IsReadBackFromEachLanguage) {
  const Spelling& spelling = GetParam();
  const DType type = named(spelling.name);
  if (!spelling.format.empty()) {
    EXPECT_EQ(*DType::from_typestr(spelling.typestr), type);
    EXPECT_EQ(*DType::from_format(spelling.format, spelling.itemsize_bytes), type);
  }
  if (spelling.dlpack_code >= 0) EXPECT_EQ(*DType::from_dlpack(*type.dlpack()), type);
}

TEST_P(DTypeSpelling, SwapsItsOrderAndBack) {
  const DType type = named(GetParam().name);
  const DType swapped = type.byteswapped();
  EXPECT_EQ(swapped.byteswapped(), type);
  EXPECT_EQ(swapped.itemsize_bytes(), type.itemsize_bytes());
  if (type.byte_order() == ByteOrder::kIrrelevant) {
    EXPECT_EQ(swapped, type);
    return;
  }
  EXPECT_FALSE(swapped == type);
  EXPECT_EQ(swapped.typestr()[0], '>');
  EXPECT_EQ(swapped.typestr().substr(1), type.typestr().substr(1));
  EXPECT_EQ(error_class_of(swapped.dlpack().status()), ErrorClass::kBuffer);
  if (type.format() != nullptr) {
    EXPECT_EQ(swapped.format()[0], '>');
    EXPECT_EQ(*DType::from_format(swapped.format(), swapped.itemsize_bytes()), swapped);
    EXPECT_EQ(*DType::from_typestr(swapped.typestr()), swapped);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, DTypeSpelling, ::testing::ValuesIn(kSpellings),
                         [](const auto& info) { return std::string(info.param.name); });

// [example]
// "<i4" in the four spellings.
void spell_int32() {
  const DType type = *DType::from_typestr("<i4");
  EXPECT_EQ(type.name(), "int32");
  EXPECT_EQ(type.itemsize_bytes(), 4);
  EXPECT_STREQ(type.format(), "i");
  EXPECT_EQ(*type.dlpack(), (DlpackType{.code = kDlpackInt, .bits = 32, .lanes = 1}));
  EXPECT_EQ(type.byteswapped().typestr(), ">i4");
}
// [/example]

TEST(DTypeExample, OfTheReadme) { spell_int32(); }

TEST(DType, IsFloat64ByDefault) { EXPECT_EQ(DType(), named("float64")); }

TEST(DType, KeepsEveryNarrowTypeApart) {
  std::set<std::string> names;
  for (int code = 0; code < 256; ++code) {
    for (int bits = 0; bits < 256; ++bits) {
      const auto type =
          DType::from_dlpack({static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1});
      if (!type.ok()) continue;
      EXPECT_TRUE(names.insert(type->name()).second) << type->name();
      EXPECT_EQ(*type->dlpack(),
                (DlpackType{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1}));
    }
  }
  EXPECT_EQ(names.size(), 30U);  // 14 plain with a code, 12 narrow floats, 4 narrow integers
}

TEST(DType, SaysWhichElementsArePaddedToAByte) {
  EXPECT_TRUE(named("float4_e2m1fn").is_padded_subbyte());
  EXPECT_TRUE(named("int4").is_padded_subbyte());
  EXPECT_FALSE(named("float8_e5m2").is_padded_subbyte());
  EXPECT_FALSE(named("bool").is_padded_subbyte());
}

TEST(DType, KnowsTheUnitsThatAreSwapped) {
  EXPECT_EQ(named("float64").swap_unit_bytes(), 8);
  EXPECT_EQ(named("complex64").swap_unit_bytes(), 4);
  EXPECT_EQ(named("bfloat16").swap_unit_bytes(), 2);
  EXPECT_EQ(named("int8").swap_unit_bytes(), 1);
  EXPECT_EQ(DType::from_typestr("<U7")->swap_unit_bytes(), 4);
  EXPECT_EQ(DType::from_typestr("|S7")->swap_unit_bytes(), 1);
  EXPECT_EQ(DType::structured(12, "", "")->swap_unit_bytes(), 1);
}

struct Text {
  std::string_view typestr;
  std::string_view format;
  Kind kind;
  std::int64_t itemsize_bytes;
  std::string_view name;
};

// As NumPy spells them.
TEST(DTypeText, ReadsAndWritesRunsAndDates) {
  constexpr std::array<Text, 9> kTexts{{
      {"|S5", "5s", Kind::kBytes, 5, "bytes(5)"},
      {"<U3", "3w", Kind::kText, 12, "str(3)"},
      {">U3", ">3w", Kind::kText, 12, "str(3) (big-endian)"},
      {"|S0", "0s", Kind::kBytes, 0, "bytes(0)"},
      {"|V7", "", Kind::kVoid, 7, "void(7)"},  // NumPy reads "7x" as a record without fields.
      {"<M8[ns]", "", Kind::kDatetime, 8, "datetime64[ns]"},
      {"<m8[25s]", "", Kind::kTimedelta, 8, "timedelta64[25s]"},
      {"<M8", "", Kind::kDatetime, 8, "datetime64"},
      {">M8[D]", "", Kind::kDatetime, 8, "datetime64[D] (big-endian)"},
  }};
  for (const Text& text : kTexts) {
    const absl::StatusOr<DType> type = DType::from_typestr(text.typestr);
    ASSERT_TRUE(type.ok()) << type.status();
    EXPECT_EQ(type->typestr(), text.typestr);
    EXPECT_EQ(format_of(*type), text.format) << text.typestr;
    EXPECT_EQ(type->kind(), text.kind);
    EXPECT_EQ(type->itemsize_bytes(), text.itemsize_bytes);
    EXPECT_EQ(type->name(), text.name);
    EXPECT_EQ(error_class_of(type->dlpack().status()), ErrorClass::kBuffer);
    EXPECT_EQ(type->byteswapped().byteswapped(), *type);
    if (!text.format.empty()) {
      EXPECT_EQ(*DType::from_format(text.format, text.itemsize_bytes), *type);
    }
  }
}

TEST(DTypeText, ReadsRawBytesOfAFormat) {
  EXPECT_EQ(*DType::from_format("7x", 7), *DType::from_typestr("|V7"));
  EXPECT_EQ(*DType::from_format("x", 1), *DType::from_typestr("|V1"));
}

TEST(DTypeText, SwapsDatesAndText) {
  EXPECT_EQ(DType::from_typestr("<M8[us]")->byteswapped().typestr(), ">M8[us]");
  EXPECT_EQ(DType::from_typestr(">U4")->byteswapped(), *DType::from_typestr("<U4"));
  EXPECT_EQ(DType::from_typestr("|S4")->byteswapped(), *DType::from_typestr("|S4"));
}

TEST(DTypeText, CarriesWhatAStructuredTypeSays) {
  const absl::StatusOr<DType> type =
      DType::structured(12, "T{=d:a:>h:b:=h:c:}", "[('a', '<f8'), ('b', '>i2'), ('c', '<i2')]");
  ASSERT_TRUE(type.ok());
  EXPECT_EQ(type->typestr(), "|V12");
  EXPECT_EQ(format_of(*type), "T{=d:a:>h:b:=h:c:}");
  EXPECT_EQ(type->descr(), "[('a', '<f8'), ('b', '>i2'), ('c', '<i2')]");
  EXPECT_EQ(type->byteswapped(), *type);
  EXPECT_FALSE(*type == *DType::structured(12, "T{=d:a:>h:b:=h:z:}", type->descr()));
  EXPECT_EQ(error_class_of(type->dlpack().status()), ErrorClass::kBuffer);
  EXPECT_EQ(DType::structured(3, "", "")->format(), nullptr);
  EXPECT_EQ(error_class_of(DType::structured(-1, "", "").status()), ErrorClass::kValue);
}

TEST(DTypeText, LivesAsLongAsAnyCopy) {
  const char* format = nullptr;
  DType copy;
  {
    const DType type = *DType::structured(4, "T{i:a:}", "");
    format = type.format();
    copy = type;
  }
  EXPECT_EQ(copy.format(), format);
  EXPECT_STREQ(format, "T{i:a:}");
}

TEST(FromTypestr, RefusesBadSpellings) {
  for (const std::string_view bad : {"",
                                     "f",
                                     "f8",
                                     "|i",
                                     "<x4",
                                     "<f",
                                     "<i3",
                                     "|b4",
                                     "<f80",
                                     "<f-8",
                                     "<f 8",
                                     "<f8 ",
                                     "=f8",
                                     "|f8",
                                     "<M4[ns]",
                                     "<M8[ns",
                                     "<M8ns]",
                                     "<M8[]",
                                     "<M8[n;]",
                                     "|M8[ns]",
                                     "<f8[ns]",
                                     "<i08x",
                                     "|U3",
                                     "|S99999999999999999999",
                                     "|V9223372036854775807",
                                     "<U4611686018427387904"}) {
    const absl::StatusOr<DType> type = DType::from_typestr(bad);
    ASSERT_FALSE(type.ok()) << bad;
    EXPECT_EQ(error_class_of(type.status()), ErrorClass::kValue) << bad;
    EXPECT_NE(type.status().message().find("'" + std::string(bad) + "'"), std::string::npos);
  }
}

TEST(FromTypestr, RefusesWhatHasNoFixedBytes) {
  EXPECT_EQ(error_class_of(DType::from_typestr("|O8").status()), ErrorClass::kType);
  EXPECT_EQ(error_class_of(DType::from_typestr("|t8").status()), ErrorClass::kType);
}

TEST(FromName, NamesTheUnknown) {
  const absl::Status status = DType::from_name("float63").status();
  EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
  EXPECT_NE(status.message().find("'float63'"), std::string::npos) << status.message();
}

TEST(FromFormat, FollowsPrefixesAndPlatformLengths) {
  EXPECT_EQ(*DType::from_format("l", 8), named("int64"));   // native: a long
  EXPECT_EQ(*DType::from_format("<l", 4), named("int32"));  // standard: always 4
  EXPECT_EQ(*DType::from_format("=q", 8), named("int64"));
  EXPECT_EQ(*DType::from_format("@i", 4), named("int32"));
  EXPECT_EQ(*DType::from_format("^H", 2), named("uint16"));
  EXPECT_EQ(*DType::from_format("!h", 2), named("int16").byteswapped());
  EXPECT_EQ(*DType::from_format("n", 8), named("int64"));
  EXPECT_EQ(*DType::from_format("N", 8), named("uint64"));
  EXPECT_EQ(*DType::from_format("c", 1), *DType::from_typestr("|S1"));
  EXPECT_EQ(*DType::from_format("s", 1), *DType::from_typestr("|S1"));
  EXPECT_EQ(*DType::from_format(">b", 1), named("int8"));
}

TEST(FromFormat, ReadsBothSpellingsOfComplex) {
  EXPECT_EQ(*DType::from_format("F", 8), named("complex64"));
  EXPECT_EQ(*DType::from_format("<D", 16), named("complex128"));
  EXPECT_EQ(*DType::from_format("G", 32), named("clongdouble"));
  EXPECT_EQ(*DType::from_format(">Zd", 16), named("complex128").byteswapped());
}

TEST(FromFormat, CarriesFieldsUnread) {
  const absl::StatusOr<DType> type = DType::from_format("T{d:a:i:b:4x}", 16);
  ASSERT_TRUE(type.ok());
  EXPECT_EQ(type->kind(), Kind::kStructured);
  EXPECT_STREQ(type->format(), "T{d:a:i:b:4x}");
  EXPECT_EQ(DType::from_format("(2,3)d", 48)->kind(), Kind::kStructured);
  EXPECT_TRUE(DType::from_format("T{d:OPX&:}", 8).ok());  // only a name
}

TEST(FromFormat, RefusesBadSpellings) {
  for (const std::string_view bad :
       {"", "<", "k", "dd", "Zi", "Z", "ZZd", "<n", "x5", "-1s", "5", "5d", "u", "<<d"}) {
    const absl::StatusOr<DType> type = DType::from_format(bad, 8);
    ASSERT_FALSE(type.ok()) << bad;
    EXPECT_EQ(error_class_of(type.status()), ErrorClass::kValue) << bad;
  }
}

TEST(FromFormat, RefusesAnotherItemsize) {
  const absl::Status status = DType::from_format("d", 4).status();
  EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
  EXPECT_NE(status.message().find("is 4, but must be 8"), std::string::npos) << status.message();
}

TEST(FromFormat, RefusesObjectsAndPointers) {
  for (const std::string_view bad : {"O", "P", "&d", "T{O:a:}", "X{}"}) {
    EXPECT_EQ(error_class_of(DType::from_format(bad, 8).status()), ErrorClass::kType) << bad;
  }
}

TEST(FromDlpack, RefusesWhatItDoesNotKnow) {
  const std::vector<DlpackType> unknown{{2, 64, 4}, {2, 64, 0}, {6, 1, 1},   {3, 64, 1},
                                        {2, 80, 1}, {17, 8, 1}, {18, 32, 1}, {200, 8, 1}};
  for (const DlpackType& type : unknown) {
    EXPECT_EQ(error_class_of(DType::from_dlpack(type).status()), ErrorClass::kBuffer)
        << static_cast<int>(type.code) << " " << static_cast<int>(type.bits);
  }
}

}  // namespace
}  // namespace gridbuf
