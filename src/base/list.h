// SPDX-License-Identifier: BSD-2-Clause
// Intrusive doubly linked list: an element is in at most one list per hook, entering and leaving
// are O(1) and allocate nothing.
//
//   struct Qp { ListHook ready_hook; };
//   List<Qp, &Qp::ready_hook> ready;
#pragma once

#include <cstddef>

namespace uroce {

struct ListHook {
  ListHook* next = nullptr;
  ListHook* previous = nullptr;

  ListHook() = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;

  [[nodiscard]] bool is_linked() const { return next != nullptr; }
  void unlink() {
    if (next == nullptr) return;
    next->previous = previous;
    previous->next = next;
    next = previous = nullptr;
  }
};

template <typename T, ListHook T::*kHook>
class List {
 public:
  List() { head_.next = head_.previous = &head_; }

  [[nodiscard]] bool empty() const { return head_.next == &head_; }
  // No-op when the element is linked already.
  void push_back(T& element) {
    ListHook& hook = element.*kHook;
    if (hook.is_linked()) return;
    hook.previous = head_.previous;
    hook.next = &head_;
    head_.previous->next = &hook;
    head_.previous = &hook;
  }
  [[nodiscard]] T* front() { return empty() ? nullptr : owner(head_.next); }
  [[nodiscard]] T* back() { return empty() ? nullptr : owner(head_.previous); }
  // `element`, which is in no list, comes behind `position`, or to the front where that is null.
  void insert_after(T* position, T& element) {
    ListHook& before = position == nullptr ? head_ : position->*kHook;
    ListHook& hook = element.*kHook;
    hook.previous = &before;
    hook.next = before.next;
    before.next->previous = &hook;
    before.next = &hook;
  }
  T* pop_front() {
    T* element = front();
    if (element != nullptr) (element->*kHook).unlink();
    return element;
  }
  // The one after `element`, or null.
  [[nodiscard]] T* next(T& element) {
    ListHook* hook = (element.*kHook).next;
    return hook == &head_ ? nullptr : owner(hook);
  }
  // The one before `element`, or null.
  [[nodiscard]] T* previous(T& element) {
    ListHook* hook = (element.*kHook).previous;
    return hook == &head_ ? nullptr : owner(hook);
  }
  // Everything of `other` comes behind what is here.
  void append(List& other) {
    if (other.empty()) return;
    other.head_.next->previous = head_.previous;
    head_.previous->next = other.head_.next;
    other.head_.previous->next = &head_;
    head_.previous = other.head_.previous;
    other.head_.next = other.head_.previous = &other.head_;
  }

 private:
  static T* owner(ListHook* hook) {
    // The hook's place in T, asked of storage that is never read.
    alignas(T) static std::byte probe[sizeof(T)];
    const auto* element = reinterpret_cast<const T*>(probe);
    const std::ptrdiff_t offset = reinterpret_cast<const std::byte*>(&(element->*kHook)) - probe;
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(hook) - offset);
  }

  ListHook head_;
};

}  // namespace uroce
