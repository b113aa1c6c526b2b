#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.layout;

namespace gridbuf {
namespace {

static_assert(default_dims(5) == Dims{kDimI, kDimJ, kDimK, Dim::data(0), Dim::data(1)});
static_assert(kDimI < kDimJ && kDimK < Dim::data(0) && Dim::data(2) < Dim::data(10));
static_assert(axes_by_rank(LayoutMap{2, 0, 1}) == Axes{1, 2, 0});  // Another 3-cycle: not itself.
static_assert(is_permutation(LayoutMap{1, 2, 0}) && is_permutation(LayoutMap{}));
static_assert(!is_permutation(LayoutMap{0, 0}) && !is_permutation(LayoutMap{1, 2}));
static_assert(!is_permutation(LayoutMap{-1, 0}));
static_assert(is_permutation(c_order(kMaxNdim)) && is_permutation(f_order(kMaxNdim)));
static_assert(c_order(3) == LayoutMap{0, 1, 2} && f_order(3) == LayoutMap{2, 1, 0});

void expect_value_error(const absl::Status& status, std::string_view text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(text), std::string_view::npos) << status.message();
}

TEST(Dims, NamesAreIdentifiersAndDecimalNumbers) {
  EXPECT_EQ(*parse_dim("I"), kDimI);
  EXPECT_EQ(*parse_dim("K"), kDimK);
  EXPECT_EQ(*parse_dim("0"), Dim::data(0));
  EXPECT_EQ(*parse_dim("2147483647"), Dim::data(kMaxDataDim));
  for (const std::string_view name : {"", "a b", "a-b", "1st", "01", "00", "-1", "+1", " 1", "1 ",
                                      "1.0", "0x1", "2147483648", "99999999999999999999"}) {
    expect_value_error(parse_dim(name).status(), "\"" + std::string(name) + "\"");
  }
  for (const std::string_view name : {"Cell", "_", "i", "IJ", "E2V", "H\xC3\xB6he"}) {
    EXPECT_EQ(to_string(*parse_dim(name)), name);
    EXPECT_EQ(parse_dim(name)->kind(), DimKind::kHorizontal);
    EXPECT_EQ(*parse_dim(name), *parse_dim(name));
  }
  EXPECT_TRUE(parse_dim(std::string(63, 'x')).ok());
  expect_value_error(parse_dim(std::string(64, 'x')).status(), "1 to 63 characters");
  expect_value_error(parse_dim("a\xC3").status(), "\"a\\303\"");
}

TEST(Dims, HaveAKind) {
  EXPECT_EQ(kDimI.kind(), DimKind::kHorizontal);
  EXPECT_EQ(kDimK.kind(), DimKind::kVertical);
  EXPECT_EQ(Dim::data(3).kind(), DimKind::kData);
  EXPECT_EQ(*make_dim("K", DimKind::kVertical), kDimK);
  for (const DimKind kind :
       {DimKind::kHorizontal, DimKind::kLocal, DimKind::kVertical, DimKind::kData}) {
    for (const char* const name : {"I", "J", "K", "0", "12"}) {
      const absl::StatusOr<Dim> dim = make_dim(name, kind);
      const DimKind fixed = parse_dim(name)->kind();
      EXPECT_EQ(dim.ok(), kind == fixed) << name;
      if (dim.ok()) EXPECT_EQ(*dim, *parse_dim(name));
      if (!dim.ok()) expect_value_error(dim.status(), "the kind of dimension \"");
    }
  }
  const Dim level = *make_dim("Level", DimKind::kHorizontal);
  const Dim other_level = *make_dim("Level", DimKind::kVertical);
  EXPECT_NE(other_level, level);
  EXPECT_TRUE(have_one_name(other_level, level));
  EXPECT_FALSE(have_one_name(*parse_dim("Cell"), *parse_dim("Edge")));
  EXPECT_FALSE(have_one_name(Dim::data(0), Dim::data(1)));
  expect_value_error(make_dim("0", DimKind::kLocal).status(),
                     "the kind of dimension \"0\" is local, but must be data");
  expect_value_error(make_dim("I", DimKind::kLocal).status(),
                     "the kind of dimension \"I\" is local, but must be horizontal");
  expect_value_error(validate_dims({other_level, level}, 2), "dims[1] is \"Level\"");
  EXPECT_EQ(*make_dim("0", DimKind::kData), Dim::data(0));
  for (const DimKind kind :
       {DimKind::kHorizontal, DimKind::kLocal, DimKind::kVertical, DimKind::kData}) {
    EXPECT_EQ(*parse_dim_kind(to_string(kind)), kind);
    EXPECT_EQ(make_dim("any", kind)->kind(), kind);
    EXPECT_EQ(to_string(*make_dim("any", kind)), "any");
  }
  expect_value_error(parse_dim_kind("diagonal").status(), "the kind of a dimension");
}

TEST(Dims, ADeclarationGivesANameItsKind) {
  const std::vector<Dim> level{*make_dim("declared_level", DimKind::kVertical)};
  EXPECT_TRUE(declare_dims(level).ok());
  EXPECT_TRUE(declare_dims(level).ok());
  EXPECT_EQ(parse_dim("declared_level")->kind(), DimKind::kVertical);
  expect_value_error(declare_dims(std::vector{*make_dim("declared_level", DimKind::kData)}),
                     "the kind of dimension \"declared_level\" is data, but must be vertical");
  EXPECT_TRUE(declare_dims(std::vector{kDimI, kDimK, Dim::data(4)}).ok());
  EXPECT_EQ(parse_dim("I")->kind(), DimKind::kHorizontal);
}

TEST(Dims, ADeclarationIsOfAllNamesOrOfNone) {
  EXPECT_TRUE(declare_dims(std::vector{*make_dim("known", DimKind::kLocal)}).ok());
  const Dim first = *make_dim("not_declared", DimKind::kVertical);
  for (const Dim wrong :
       {*make_dim("known", DimKind::kData), *make_dim("not_declared", DimKind::kData)}) {
    expect_value_error(declare_dims(std::vector{first, wrong}), "is data, but must be");
    EXPECT_EQ(parse_dim("not_declared")->kind(), DimKind::kHorizontal);
    EXPECT_EQ(parse_dim("known")->kind(), DimKind::kLocal);
  }
}

TEST(Dims, AStaggeredHalfHasGT4PysNameOrADeclaredOne) {
  const Dim level = *make_dim("HalfTestLevel", DimKind::kVertical);
  const Dim half = *half_of(level);
  EXPECT_EQ(to_string(half), "_StaggeredHalfTestLevel");
  EXPECT_EQ(half.kind(), DimKind::kVertical);
  EXPECT_EQ(*half_of(half), level);
  EXPECT_EQ(*half_of(*half_of(kDimI)), kDimI);
  EXPECT_TRUE(are_halves(half, level));
  EXPECT_FALSE(are_halves(half, half));
  EXPECT_FALSE(are_halves(kDimI, kDimJ));
  const Dim half_of_i = *half_of(kDimI);
  EXPECT_TRUE(kDimI < half_of_i && half_of_i < kDimJ && half_of_i < *half_of(kDimJ));
  EXPECT_TRUE(level < half && half < *make_dim("HalfTestLevels", DimKind::kVertical));

  const Dim named = *parse_dim("HalfTestInterface");
  EXPECT_FALSE(are_halves(named, level));
  EXPECT_TRUE(declare_half(named, half).ok());
  EXPECT_TRUE(declare_half(named, half).ok());
  EXPECT_EQ(parse_dim("HalfTestInterface")->kind(), DimKind::kVertical);
  EXPECT_TRUE(are_halves(*parse_dim("HalfTestInterface"), level));
  EXPECT_TRUE(are_halves(half, *parse_dim("HalfTestInterface")));  // two names of one half
  EXPECT_EQ(*half_of(*parse_dim("HalfTestInterface")), level);
  const Dim other = *half_of(*make_dim("HalfTestOther", DimKind::kVertical));
  expect_value_error(
      declare_half(named, other),
      "the meaning of dimension \"HalfTestInterface\" is "
      "\"_StaggeredHalfTestOther\", but must be _StaggeredHalfTestLevel, as declared");
  expect_value_error(declare_half(named, *half_of(kDimI)), "must be vertical");
  expect_value_error(declare_half(kDimJ, *half_of(kDimI)), "that of I, J, K or a number");
  expect_value_error(declare_half(named, level), "but must be the staggered half of one");
  expect_value_error(half_of(Dim::data(1)).status(), "the number 1");
}

TEST(Dims, KnowTheirFirstIndex) {
  for (const Dim dim : {kDimI, kDimK, Dim::data(7), Dim::data(kMaxDataDim), *parse_dim("Cell")}) {
    EXPECT_FALSE(dim.has_start());
    for (const std::int64_t start :
         {Dim::kMinStart, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, Dim::kMaxStart}) {
      const Dim known = dim.starting_at(start);
      EXPECT_TRUE(known.has_start());
      EXPECT_EQ(known.start(), start);
      EXPECT_EQ(known, dim);
      EXPECT_EQ(known.code(), dim.code());
      EXPECT_FALSE(known.is_identical(dim));
      EXPECT_FALSE(known.is_stretchable() || known.is_unnamed());
      EXPECT_TRUE(known.plain().is_identical(dim));
      EXPECT_FALSE(known.stretchable().has_start());
      EXPECT_TRUE(known.stretchable().is_stretchable());
    }
    EXPECT_FALSE(dim.starting_at(Dim::kMinStart - 1).has_start());
    EXPECT_FALSE(dim.starting_at(Dim::kMaxStart + 1).has_start());
    EXPECT_TRUE(dim.unnamed().is_unnamed() && dim.unnamed().is_stretchable());
    EXPECT_TRUE(dim.unnamed().stretchable().is_unnamed());
  }
}

TEST(Dims, AreOrderedByKindThenByName) {
  const std::vector<Dim> in_order{*parse_dim("Cell"),
                                  *parse_dim("Edge"),
                                  kDimI,
                                  kDimJ,
                                  *make_dim("Level", DimKind::kHorizontal),
                                  *make_dim("E2C", DimKind::kLocal),
                                  *make_dim("Half", DimKind::kVertical),
                                  kDimK,
                                  Dim::data(2),
                                  Dim::data(10),
                                  *make_dim("a", DimKind::kData),
                                  *make_dim("b", DimKind::kData)};
  for (std::size_t i = 0; i < in_order.size(); ++i) {
    for (std::size_t j = 0; j < in_order.size(); ++j) {
      EXPECT_EQ(in_order[i] < in_order[j], i < j) << i << j;
      EXPECT_EQ(in_order[i] == in_order[j], i == j) << i << j;
    }
  }
}

TEST(Dims, EveryNameSurvivesARoundTrip) {
  for (const Dim dim :
       {kDimI, kDimJ, kDimK, Dim::data(0), Dim::data(9), Dim::data(10), Dim::data(kMaxDataDim)}) {
    EXPECT_EQ(*parse_dim(to_string(dim)), dim);
  }
  EXPECT_EQ(to_string(Dims{kDimI, Dim::data(10)}), "('I', '10')");
  EXPECT_EQ(to_string(Dims{kDimI}), "('I',)");
}

TEST(Dims, AStringHoldsOneCharacterNames) {
  EXPECT_EQ(*parse_dims("KI0", 3), (Dims{kDimK, kDimI, Dim::data(0)}));
  EXPECT_EQ(*parse_dims("10", 2), (Dims{Dim::data(1), Dim::data(0)}));
}

TEST(Dims, ASequenceHoldsAnyNames) {
  const std::vector<std::string_view> names{"10", "J"};
  EXPECT_EQ(*parse_dims(names, 2), (Dims{Dim::data(10), kDimJ}));
}

TEST(Dims, RepeatsAndWrongCountsNameTheOffender) {
  expect_value_error(parse_dims("IJI", 3).status(),
                     "dims[2] is \"I\", but must be another name than dims[0]");
  expect_value_error(parse_dims("IJ", 3).status(), "the number of names in dims is 2");
  expect_value_error(validate_dims(Dims{kDimI, kDimI}, 2), "dims[1] is \"I\"");
  expect_value_error(validate_dims(Dims{kDimI}, 2), "is 1, but must be 2");
  EXPECT_TRUE(validate_dims(Dims{kDimJ, kDimI}, 2).ok());
}

TEST(Dims, AnOffenderIsShownWholeButNeverBreaksTheMessage) {
  expect_value_error(parse_dims("I\xC3", 2).status(), "\"\\303\"");
  expect_value_error(parse_dim("\n").status(), "\"\\n\"");
  expect_value_error(parse_dim(std::string(1000, 'x')).status(), std::string(40, 'x') + "...");
}

TEST(Dims, MessagesAreValidUtf8WhateverWasGiven) {
  EXPECT_EQ(quoted_name("K\xC3\x84\xE2\x82\xAC\xF0\x9F\x8C\x8D"),
            "\"K\xC3\x84\xE2\x82\xAC\xF0\x9F\x8C\x8D\"");
  EXPECT_EQ(quoted_name("\x80"), "\"\\200\"");                             // A stray continuation.
  EXPECT_EQ(quoted_name("\xC3"), "\"\\303\"");                             // A lone lead byte.
  EXPECT_EQ(quoted_name("\xC0\xAF"), "\"\\300\\257\"");                    // Overlong.
  EXPECT_EQ(quoted_name("\xED\xA0\x80"), "\"\\355\\240\\200\"");           // A surrogate.
  EXPECT_EQ(quoted_name("\xF4\x90\x80\x80"), "\"\\364\\220\\200\\200\"");  // Past the last.
  EXPECT_EQ(quoted_name(std::string(39, 'x') + "\xC3\x84" + "yz"),
            "\"" + std::string(39, 'x') + "\xC3\x84" + "...\"");
}

TEST(Dims, AListFarTooLongIsRefusedByItsLength) {
  const std::vector<std::string> texts = [] {
    std::vector<std::string> made;
    for (int i = 0; i < 1000; ++i) made.push_back(std::to_string(i));
    return made;
  }();
  const std::vector<std::string_view> names(texts.begin(), texts.end());
  expect_value_error(parse_dims(names, 64).status(), "is 1000, but must be 64");
}

TEST(Dims, DefaultNamesAreDistinctAtAnyLength) {
  for (int ndim = 0; ndim <= kMaxNdim; ++ndim) {
    EXPECT_TRUE(validate_dims(default_dims(ndim), ndim).ok()) << ndim;
  }
}

}  // namespace
}  // namespace gridbuf
