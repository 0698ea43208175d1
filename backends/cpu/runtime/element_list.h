// SPDX-License-Identifier: Apache-2.0
// A list of values, in which insertion, removal and copying take little more time for long lists than for short ones: a
// model decides how long they are and how often they change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace backplane::cpu {

// Consists of pieces of at most kMost elements, which copies of the list share until one of them changes a piece.
template <class T>
class ElementList {
  using Piece = std::vector<T>;
  using Pieces = std::vector<std::shared_ptr<Piece>>;

 public:
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;

    const T& operator*() const { return (**piece_)[at_]; }
    const T* operator->() const { return &**this; }
    Iterator& operator++() {
      if (++at_ == (*piece_)->size()) {
        ++piece_;
        at_ = 0;
      }
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    friend class ElementList;
    typename Pieces::const_iterator piece_;
    size_t at_ = 0;
  };

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Iterator begin() const { return iterator(pieces_.begin()); }
  Iterator end() const { return iterator(pieces_.end()); }
  // Takes time in proportion to the number of pieces.
  const T& operator[](size_t i) const {
    const Place place = place_of(i);
    return (*pieces_[place.piece])[place.at];
  }

  void push_back(T value) { insert(size_, std::move(value)); }
  void insert(size_t i, T value) {
    if (i == size_ && (pieces_.empty() || pieces_.back()->size() == kMost)) {
      pieces_.push_back(std::make_shared<Piece>(1, std::move(value)));
      ++size_;
      return;
    }
    Place place = i == size_ ? Place{pieces_.size() - 1, pieces_.back()->size()} : place_of(i);
    if (pieces_[place.piece]->size() == kMost) {  // its second half becomes a piece of its own
      Piece& full = own(place.piece);
      const auto half = full.begin() + kMost / 2;
      auto second = std::make_shared<Piece>(std::make_move_iterator(half), std::make_move_iterator(full.end()));
      full.erase(half, full.end());
      pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(place.piece) + 1, std::move(second));
      if (place.at > kMost / 2) place = {place.piece + 1, place.at - kMost / 2};
    }
    Piece& piece = own(place.piece);
    piece.insert(piece.begin() + static_cast<std::ptrdiff_t>(place.at), std::move(value));
    ++size_;
  }
  void erase(size_t i) {
    const Place place = place_of(i);
    Piece& piece = own(place.piece);
    piece.erase(piece.begin() + static_cast<std::ptrdiff_t>(place.at));
    if (piece.empty()) pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(place.piece));
    --size_;
  }

 private:
  static constexpr size_t kMost = 512;

  struct Place {
    size_t piece, at;
  };
  Place place_of(size_t i) const {
    size_t piece = 0;
    for (; i >= pieces_[piece]->size(); ++piece) i -= pieces_[piece]->size();
    return {piece, i};
  }
  static Iterator iterator(typename Pieces::const_iterator piece) {
    Iterator first;
    first.piece_ = piece;
    return first;
  }
  // Returns a piece for modification. If other lists share it, copies it for this one first.
  Piece& own(size_t piece) {
    std::shared_ptr<Piece>& shared = pieces_[piece];
    if (shared.use_count() != 1) shared = std::make_shared<Piece>(*shared);
    return *shared;
  }

  Pieces pieces_;  // none is empty
  size_t size_ = 0;
};

}  // namespace backplane::cpu
