#include "lockstep/comm/work.h"

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace lockstep::comm {

Work::Work(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
Work::Work(Work&&) noexcept = default;
Work& Work::operator=(Work&&) noexcept = default;
Work::~Work() = default;

void Work::wait() { work_->wait(); }
bool Work::is_completed() const { return work_->isCompleted(); }
int Work::source_rank() const { return work_->sourceRank(); }

}  // namespace lockstep::comm
