// A GoogleTest suite for C++ array libraries: one line, and each rule that a C++ program can see is
// a test.
//
//     struct MyArrays {
//       static gridbuf::conformance::Answer make(const gridbuf::conformance::Plan& plan);
//     };
//     GRIDBUF_CONFORMANCE_SUITE(mylib, MyArrays);
//
// `make` returns a DLManagedTensorVersioned* or DLManagedTensor* of the library's own dlpack.h,
// whose content is plan.content(), or Unsupported{"why"}. What it can do beyond shapes, element
// types and writability it declares: `static constexpr Declares kDeclares = {.layout = true};`.
//
// All tests of one library share one run of the judge (judge.h), because a tensor answers many
// rules at once. A broken MUST fails its test with the requirement, the expected and the found
// value, the simplest plan, and how to run that plan alone; a SHOULD that is not met is printed and
// recorded, and passes; a rule that was not judged is skipped with its reason.
#ifndef GRIDBUF_CONFORMANCE_CC_SUITE_H_
#define GRIDBUF_CONFORMANCE_CC_SUITE_H_

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <typeinfo>

#include "conformance/cc/judge.h"
#include "conformance/cc/producer.h"

namespace gridbuf::conformance {

/// What a traits class declares; nothing if it has no kDeclares.
template <class Traits>
constexpr Declares declares_of() {
  if constexpr (requires { Traits::kDeclares; }) {
    return Traits::kDeclares;
  } else {
    return {};
  }
}

/// A rule's outcome as GoogleTest's.
void expect_rule(const Report& report, std::string_view id);
/// Fails if every plan was declined: a suite that judged nothing must not pass.
void expect_something_made(const Report& report);

template <class Traits>
class DlpackConformance : public ::testing::Test {
 protected:
  static const Report& report() {
    static const Report made = judge(
        {.name = typeid(Traits).name(), .declares = declares_of<Traits>(), .make = &Traits::make});
    return made;
  }
};

TYPED_TEST_SUITE_P(DlpackConformance);

#define GRIDBUF_CONFORMANCE_RULE(group, number)             \
  TYPED_TEST_P(DlpackConformance, group##_##number) {       \
    expect_rule(TestFixture::report(), #group "-" #number); \
  }

TYPED_TEST_P(DlpackConformance, SomethingIsMade) { expect_something_made(TestFixture::report()); }
GRIDBUF_CONFORMANCE_RULE(DL, 01)
GRIDBUF_CONFORMANCE_RULE(DL, 02)
GRIDBUF_CONFORMANCE_RULE(DL, 03)
GRIDBUF_CONFORMANCE_RULE(DL, 04)
GRIDBUF_CONFORMANCE_RULE(DL, 06)
GRIDBUF_CONFORMANCE_RULE(DL, 07)
GRIDBUF_CONFORMANCE_RULE(DL, 08)
GRIDBUF_CONFORMANCE_RULE(DL, 09)
GRIDBUF_CONFORMANCE_RULE(DL, 10)
GRIDBUF_CONFORMANCE_RULE(DL, 11)
GRIDBUF_CONFORMANCE_RULE(DL, 12)
GRIDBUF_CONFORMANCE_RULE(DL, 13)
GRIDBUF_CONFORMANCE_RULE(DL, 14)
GRIDBUF_CONFORMANCE_RULE(DL, 15)
GRIDBUF_CONFORMANCE_RULE(DL, 16)
GRIDBUF_CONFORMANCE_RULE(DL, 17)
GRIDBUF_CONFORMANCE_RULE(DL, 19)
GRIDBUF_CONFORMANCE_RULE(DL, 20)
GRIDBUF_CONFORMANCE_RULE(DL, 21)
GRIDBUF_CONFORMANCE_RULE(DL, 24)
GRIDBUF_CONFORMANCE_RULE(DL, 27)
GRIDBUF_CONFORMANCE_RULE(DL, 30)
GRIDBUF_CONFORMANCE_RULE(GT, 16)
GRIDBUF_CONFORMANCE_RULE(GT, 17)
GRIDBUF_CONFORMANCE_RULE(GT, 20)
GRIDBUF_CONFORMANCE_RULE(GT, 22)
GRIDBUF_CONFORMANCE_RULE(GT, 23)
GRIDBUF_CONFORMANCE_RULE(XA, 08)

#undef GRIDBUF_CONFORMANCE_RULE

REGISTER_TYPED_TEST_SUITE_P(DlpackConformance, SomethingIsMade, DL_01, DL_02, DL_03, DL_04, DL_06,
                            DL_07, DL_08, DL_09, DL_10, DL_11, DL_12, DL_13, DL_14, DL_15, DL_16,
                            DL_17, DL_19, DL_20, DL_21, DL_24, DL_27, DL_30, GT_16, GT_17, GT_20,
                            GT_22, GT_23, XA_08);

}  // namespace gridbuf::conformance

/// Instantiates the suite for one library: its tests are `name/DlpackConformance/0.DL_09` and so
/// on.
#define GRIDBUF_CONFORMANCE_SUITE(name, Traits)                    \
  namespace gridbuf::conformance {                                 \
  INSTANTIATE_TYPED_TEST_SUITE_P(name, DlpackConformance, Traits); \
  }                                                                \
  static_assert(true, "a semicolon follows")

#endif  // GRIDBUF_CONFORMANCE_CC_SUITE_H_
