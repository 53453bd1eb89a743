// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "store/leftovers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "unit/store/fixture.h"

namespace ckpt {
namespace {

class LeftoversTest : public RootTest {
 protected:
  void Plant(const std::string& folder) {
    std::filesystem::create_directories(At(folder + "/sub"));
    WriteAll(At(folder + "/model.safetensors"), "half");
  }
};

TEST_F(LeftoversTest, B17_StagingAndTrashGoWithTheNextOwnerAndNothingElseDoes) {
  ASSERT_OK(Save(Take(), {.step = 1}));
  Plant(".staging-0001");
  Plant(".trash-0002");
  Plant(".slot-0003");
  Plant("step-000000000009");
  Plant("mine");
  WriteAll(At("notes.txt"), "kept");
  auto owner = Take();
  EXPECT_EQ(Names(root_),
            (std::vector<std::string>{".ckpt", ".slot-0003", "LATEST", "mine", "notes.txt",
                                      "step-000000000001", "step-000000000009"}));
  EXPECT_EQ(FillOf(1), 'x');
}

TEST_F(LeftoversTest, AReaderRemovesNothing) {
  ASSERT_OK(Save(Take(), {.step = 1}));
  Plant(".staging-0001");
  EXPECT_OK(NewestStep(Root(), nullptr).status());
  EXPECT_OK(ReadCatalog(StepDir(1)).status());
  EXPECT_TRUE(Exists(At(".staging-0001")));
}

TEST_F(LeftoversTest, ALinkWithALeftoversNameIsRemovedNotFollowed) {
  ASSERT_OK(Save(Take(), {.step = 1}));
  std::filesystem::create_directories(base_ + "/outside");
  WriteAll(base_ + "/outside/file", "kept");
  ASSERT_EQ(symlink((base_ + "/outside").c_str(), At(".staging-0001").c_str()), 0);
  ASSERT_EQ(symlink((base_ + "/outside").c_str(), At(".trash-0001").c_str()), 0);
  Take();
  EXPECT_FALSE(Exists(At(".staging-0001")));
  EXPECT_FALSE(Exists(At(".trash-0001")));
  EXPECT_EQ(ReadAll(base_ + "/outside/file"), "kept");
}

TEST_F(LeftoversTest, KeptFoldersStay) {
  std::filesystem::create_directories(root_);
  Plant(".staging-0001");
  Plant(".staging-0002");
  EXPECT_TRUE(RetireLeftovers(Root(), {".staging-0001"}).empty());
  EXPECT_TRUE(RemoveTrash(Root(), {".staging-0001"}).empty());
  EXPECT_EQ(Names(root_), std::vector<std::string>{".staging-0001"});
}

TEST_F(LeftoversTest, B17_AStepsFolderWithoutRecordIsReplacedByItsOwnSave) {
  auto owner = Take();
  Plant(StepFolder(5));
  ASSERT_OK(Save(owner, {.step = 4}));
  EXPECT_TRUE(Exists(InStep(5, "sub")));  // another step's save leaves it alone
  ASSERT_OK(Save(owner, {.step = 5, .on_existing = OnExisting::kRefuse}));
  EXPECT_FALSE(Exists(InStep(5, "sub")));
  EXPECT_EQ(Steps(), (std::vector<int64_t>{5, 4}));
  EXPECT_OK(ReadCatalog(StepDir(5)).status());
  ExpectClean();
}

TEST_F(LeftoversTest, ASaveThatFailsLeavesTheFolderWithoutRecordAsItWas) {
  auto owner = Take();
  Plant(StepFolder(5));
  SaveSpec spec{.step = 5};
  spec.enter_commit = [] { return Status(Code::kCancelled, "no"); };
  EXPECT_CODE(kCancelled, Save(owner, spec));
  EXPECT_EQ(Names(At(StepFolder(5))), (std::vector<std::string>{"model.safetensors", "sub"}));
  ExpectClean();
}

}  // namespace
}  // namespace ckpt
