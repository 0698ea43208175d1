// SPDX-License-Identifier: Apache-2.0
#include "isolate/staging.h"

#include <gtest/gtest.h>

#include <cstring>

namespace backplane::isolate {
namespace {

Piece taken(StagingPool& pool, uint64_t bytes) {
  auto piece = pool.take(bytes);
  EXPECT_TRUE(piece.ok()) << piece.status().text();
  if (piece.ok()) std::memset(piece->data(), 1, bytes);
  return piece.ok() ? *piece : Piece();
}

TEST(Staging, SmallPiecesShareABlockAndDoNotOverlap) {
  StagingPool pool;
  const Piece first = taken(pool, 0), second = taken(pool, 65), third = taken(pool, 64 << 10);
  EXPECT_EQ(pool.blocks(), 1u);
  EXPECT_GE(second.offset, first.offset + first.bytes);
  EXPECT_GE(third.offset, second.offset + second.bytes);
  EXPECT_EQ(second.bytes, 4096u);
  for (const Piece& piece : {first, second, third}) EXPECT_EQ(reinterpret_cast<uintptr_t>(piece.data()) % 4096, 0u);
  EXPECT_NE(taken(pool, (64 << 10) + 1).staging, first.staging);
}

TEST(Staging, PiecesThatAreGivenBackAreUsedAgain) {
  StagingPool pool;
  const Piece small = taken(pool, 100), large = taken(pool, 300'000);
  EXPECT_FALSE(taken(pool, 100) == small);
  pool.give_back(small);
  pool.give_back(large);
  EXPECT_TRUE(taken(pool, 120) == small);
  EXPECT_TRUE(taken(pool, 400'000) == large);
  EXPECT_FALSE(taken(pool, 400'000) == large);
}

TEST(Staging, ATensorThatGrowsNeedsFewPieces) {
  StagingPool pool;
  Piece piece = taken(pool, 1);
  for (uint64_t bytes = 1; bytes <= 1'000'000; bytes += 1000) {
    if (piece.bytes >= bytes) continue;
    pool.give_back(piece);
    piece = taken(pool, bytes);
  }
  EXPECT_EQ(pool.blocks(), 5u);  // one for all small pieces, and one for each size from 128 KiB to 1 MiB
}

TEST(Staging, WhatNoMachineHasIsRefused) {
  StagingPool pool;
  for (const uint64_t bytes : {UINT64_MAX, uint64_t{1} << 62})
    EXPECT_EQ(pool.take(bytes).status().code(), BP_RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace backplane::isolate
