// What every backend does, operation by operation: run between threads and, over Gloo, between processes. Each rank
// computes by itself what the others bring, and so what the operation must give.
#include <ATen/Functions.h>

#include <chrono>
#include <numeric>
#include <set>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/comm_test_support.h"
#include "lockstep/comm/test_tensors.h"

namespace lockstep::comm {
namespace {

using Tensors = std::vector<at::Tensor>;
using std::chrono::milliseconds;

const std::vector<at::ScalarType> kReducible = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kChar,
                                                at::kByte,  at::kInt,    at::kLong,     at::kBool};
const std::vector<at::ScalarType> kComplex = {at::kComplexFloat, at::kComplexDouble};
// Unknown to Gloo, which moves them as bytes.
const std::vector<at::ScalarType> kBytes = {at::kShort, at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kUInt16};

std::vector<at::ScalarType> joined(std::vector<at::ScalarType> a, const std::vector<at::ScalarType>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool is_integral(at::ScalarType dtype) { return c10::isIntegralType(dtype, /*includeBool=*/true); }

// Something to be overwritten, with no value that a sample has.
at::Tensor blank(at::ScalarType dtype, at::IntArrayRef shape) { return at::full(shape, 7, at::kDouble).to(dtype); }
Tensors blanks(int count, at::ScalarType dtype, at::IntArrayRef shape) {
  Tensors list;
  for (int i = 0; i < count; ++i) list.push_back(blank(dtype, shape));
  return list;
}

Tensors samples(int size, at::ScalarType dtype, at::IntArrayRef shape) {
  Tensors list;
  for (int rank = 0; rank < size; ++rank) list.push_back(sample(rank, dtype, shape));
  return list;
}

void broadcasts(const ProcessGroup& group, at::ScalarType dtype, at::IntArrayRef shape) {
  for (const int root : {0, group.size() - 1}) {
    const auto tensor = sample(group.rank(), dtype, shape);
    group.broadcast(tensor, {.root = Member::group(root)}).wait();
    EXPECT_TRUE(same_bits(tensor, sample(root, dtype, shape))) << "broadcast from " << root;
  }
}

void all_gathers(const ProcessGroup& group, at::ScalarType dtype, at::IntArrayRef shape) {
  const int size = group.size();
  const auto mine = sample(group.rank(), dtype, shape);
  const auto all = samples(size, dtype, shape);

  const auto whole = blank(dtype, {size * mine.numel()});
  group.all_gather(whole, mine).wait();
  EXPECT_TRUE(same_bits(whole, at::cat(Tensors(all)).view(-1))) << "all_gather into one tensor";

  const auto list = blanks(size, dtype, shape);
  group.all_gather(list, mine).wait();
  for (int rank = 0; rank < size; ++rank) EXPECT_TRUE(same_bits(list[rank], all[rank])) << "all_gather into a list";

  std::vector<Tensors> lists;
  for (int rank = 0; rank < size; ++rank) lists.push_back({blank(dtype, shape), blank(dtype, {1})});
  group.all_gather_coalesced(lists, {mine, sample(group.rank(), dtype, {1})}).wait();
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_TRUE(same_bits(lists[rank][0], all[rank])) << "all_gather_coalesced";
    EXPECT_TRUE(same_bits(lists[rank][1], sample(rank, dtype, {1}))) << "all_gather_coalesced";
  }
}

void gathers_and_scatters(const ProcessGroup& group, at::ScalarType dtype, at::IntArrayRef shape) {
  const int size = group.size();
  const int root = size - 1;
  const bool is_root = group.rank() == root;
  const auto gathered = is_root ? blanks(size, dtype, shape) : Tensors();
  group.gather(gathered, sample(group.rank(), dtype, shape), {.root = Member::group(root)}).wait();
  for (std::size_t rank = 0; rank < gathered.size(); ++rank) {
    EXPECT_TRUE(same_bits(gathered[rank], sample(static_cast<int>(rank), dtype, shape))) << "gather";
  }
  const auto scattered = blank(dtype, shape);
  group.scatter(scattered, is_root ? samples(size, dtype, shape) : Tensors(), {.root = Member::group(root)}).wait();
  EXPECT_TRUE(same_bits(scattered, sample(group.rank(), dtype, shape))) << "scatter";
}

// Rank r's rows for rank t: (r + t) % 3 of them, so that some send none.
std::int64_t num_rows(int from, int to) { return (from + to) % 3; }
at::Tensor rows_for(int from, int to, at::ScalarType dtype) {
  return sample(from + 2 * to, dtype, {num_rows(from, to), 2});
}

void all_to_alls(const ProcessGroup& group, at::ScalarType dtype) {
  const int size = group.size();
  const int me = group.rank();
  const auto even = blank(dtype, {size, 2});
  Tensors to_all;
  Tensors from_all;
  for (int other = 0; other < size; ++other) {
    to_all.push_back(sample(me + 2 * other, dtype, {1, 2}));
    from_all.push_back(sample(other + 2 * me, dtype, {1, 2}));
  }
  group.all_to_all(even, at::cat(to_all)).wait();
  EXPECT_TRUE(same_bits(even, at::cat(from_all))) << "even all_to_all";

  AllToAllOptions splits;
  to_all.clear();
  from_all.clear();
  for (int other = 0; other < size; ++other) {
    splits.input_splits.push_back(num_rows(me, other));
    splits.output_splits.push_back(num_rows(other, me));
    to_all.push_back(rows_for(me, other, dtype));
    from_all.push_back(rows_for(other, me, dtype));
  }
  const auto expected = at::cat(from_all);
  const auto uneven = blank(dtype, expected.sizes());
  group.all_to_all(uneven, at::cat(to_all), splits).wait();
  EXPECT_TRUE(same_bits(uneven, expected)) << "uneven all_to_all";
}

void passes_around(const ProcessGroup& group, at::ScalarType dtype, at::IntArrayRef shape) {
  const int next = (group.rank() + 1) % group.size();
  const int previous = (group.rank() + group.size() - 1) % group.size();
  const auto received = blank(dtype, shape);
  auto sending = group.send(sample(group.rank(), dtype, shape), Member::group(next));
  group.receive(received, Member::group(previous)).wait();
  sending.wait();
  EXPECT_TRUE(same_bits(received, sample(previous, dtype, shape))) << "send and receive";
}

TEST_P(CollectiveTest, MovesEveryDtype) {
  run([](TestRank& me) {
    for (const auto dtype : joined(joined(kReducible, kComplex), kBytes)) {
      SCOPED_TRACE(c10::toString(dtype));
      for (const auto& shape : std::vector<std::vector<std::int64_t>>{{2, 3}, {0, 3}}) {
        SCOPED_TRACE(at::IntArrayRef(shape));
        broadcasts(me.group, dtype, shape);
        all_gathers(me.group, dtype, shape);
        gathers_and_scatters(me.group, dtype, shape);
        passes_around(me.group, dtype, shape);
      }
      broadcasts(me.group, dtype, {});
    }
    me.group.barrier().wait();
    me.group.monitored_barrier(milliseconds(10000));
  });
}

TEST_P(CollectiveTest, ExchangesRowsOfEveryDtype) {
  run([](TestRank& me) {
    for (const auto dtype : joined(joined(kReducible, kComplex), kBytes)) {
      SCOPED_TRACE(c10::toString(dtype));
      all_to_alls(me.group, dtype);
    }
  });
}

void reductions(const ProcessGroup& group, at::ScalarType dtype, ReduceOp op, at::IntArrayRef shape) {
  const int size = group.size();
  const int me = group.rank();
  const auto brought = [&](int rank) {
    return op == ReduceOp::product ? factors(rank, dtype, shape) : sample(rank, dtype, shape);
  };
  Tensors all;
  for (int rank = 0; rank < size; ++rank) all.push_back(brought(rank));
  const auto expected = reduction_of(all, op);
  const auto same = op == ReduceOp::avg ? same_values : same_bits;

  const auto tensor = brought(me);
  group.all_reduce(tensor, {.op = op}).wait();
  EXPECT_TRUE(same(tensor, expected)) << "all_reduce";

  const auto to_root = brought(me);
  group.reduce(to_root, {.root = Member::group(size - 1), .op = op}).wait();
  if (me == size - 1) EXPECT_TRUE(same(to_root, expected)) << "reduce";

  // Each rank brings its tensor once for every rank, and so every rank receives the reduction.
  const auto piece = blank(dtype, shape);
  group.reduce_scatter(piece, at::cat(Tensors(static_cast<std::size_t>(size), brought(me))), {.op = op}).wait();
  EXPECT_TRUE(same(piece, expected)) << "reduce_scatter of one tensor";

  const auto listed = blank(dtype, shape);
  group.reduce_scatter(listed, Tensors(static_cast<std::size_t>(size), brought(me)), {.op = op}).wait();
  EXPECT_TRUE(same(listed, expected)) << "reduce_scatter of a list";
}

std::vector<ReduceOp> reductions_of(at::ScalarType dtype) {
  if (c10::isComplexType(dtype)) return {ReduceOp::sum, ReduceOp::avg};
  std::vector<ReduceOp> ops = {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max};
  if (!is_integral(dtype)) return ops.push_back(ReduceOp::avg), ops;
  for (const auto bitwise : {ReduceOp::band, ReduceOp::bor, ReduceOp::bxor}) ops.push_back(bitwise);
  return ops;
}

TEST_P(CollectiveTest, ReducesEveryDtypeByEveryOperation) {
  run([](TestRank& me) {
    auto dtypes = joined(kReducible, kComplex);
    if (!is_gloo()) dtypes.push_back(at::kShort);
    for (const auto dtype : dtypes) {
      for (const auto op : reductions_of(dtype)) {
        SCOPED_TRACE(std::string(to_word(op)) + " of " + c10::toString(dtype));
        reductions(me.group, dtype, op, {2, 3});
      }
      SCOPED_TRACE(std::string("nothing, of ") + c10::toString(dtype));
      reductions(me.group, dtype, ReduceOp::sum, {0, 3});
    }
  });
}

TEST_P(CollectiveTest, ReducesListsOfTensors) {
  run([](TestRank& me) {
    const auto& group = me.group;
    const Tensors pair{sample(me.rank, at::kFloat, {2, 2}), sample(me.rank, at::kFloat, {3})};
    group.all_reduce_coalesced(pair, {.op = ReduceOp::sum}).wait();
    EXPECT_TRUE(same_bits(pair[0], reduction_of(samples(me.size, at::kFloat, {2, 2}), ReduceOp::sum)));
    EXPECT_TRUE(same_bits(pair[1], reduction_of(samples(me.size, at::kFloat, {3}), ReduceOp::sum)));

    const auto size = static_cast<std::size_t>(me.size);
    const Tensors pieces{blank(at::kDouble, {2}), blank(at::kDouble, {1, 3})};
    group
        .reduce_scatter_coalesced(pieces, {at::cat(Tensors(size, sample(me.rank, at::kDouble, {2}))),
                                           at::cat(Tensors(size, sample(me.rank, at::kDouble, {1, 3})))})
        .wait();
    EXPECT_TRUE(same_bits(pieces[0], reduction_of(samples(me.size, at::kDouble, {2}), ReduceOp::sum)));
    EXPECT_TRUE(same_bits(pieces[1], reduction_of(samples(me.size, at::kDouble, {1, 3}), ReduceOp::sum)));

    // Rank r's share has r rows.
    Tensors shares;
    for (int rank = 0; rank < me.size; ++rank) shares.push_back(sample(me.rank, at::kFloat, {rank, 2}));
    const auto share = blank(at::kFloat, {me.rank, 2});
    group.reduce_scatter(share, shares).wait();
    EXPECT_TRUE(same_bits(share, reduction_of(samples(me.size, at::kFloat, {me.rank, 2}), ReduceOp::sum)));

    // Sparse: rank r has a row at r and one at 0.
    const auto sparse =
        at::sparse_coo_tensor(at::tensor({0, me.rank}, at::kLong).view({1, 2}), at::ones({2, 2}), {me.size, 2});
    group.all_reduce_sparse(sparse).wait();
    auto dense = at::ones({me.size, 2});
    dense[0] = me.size + 1;
    EXPECT_TRUE(same_bits(sparse.to_dense(), dense));
  });
}

TEST_P(CollectiveTest, TakesTensorsWithGaps) {
  run([](TestRank& me) {
    const auto transposed = sample(me.rank, at::kFloat, {2, 3}).t();
    me.group.all_reduce(transposed).wait();
    EXPECT_TRUE(same_bits(transposed, reduction_of(samples(me.size, at::kFloat, {2, 3}), ReduceOp::sum).t()));

    const auto sliced = sample(me.rank, at::kFloat, {3, 4}).slice(1, 0, 4, 2);
    me.group.broadcast(sliced, {.root = Member::global(me.size - 1)}).wait();
    EXPECT_TRUE(same_bits(sliced, sample(me.size - 1, at::kFloat, {3, 4}).slice(1, 0, 4, 2)));

    const auto whole = blank(at::kFloat, {me.size * 6});
    me.group.all_gather(whole, sample(me.rank, at::kFloat, {2, 3}).t()).wait();
    Tensors columns;
    for (const auto& each : samples(me.size, at::kFloat, {2, 3})) columns.push_back(each.t().reshape(-1));
    EXPECT_TRUE(same_bits(whole, at::cat(columns)));

    // A row of each rank, in the columns of one tensor; int16, which Gloo moves as bytes.
    const auto table = at::zeros({2, me.size}, at::kShort);
    me.group.all_gather(table.unbind(1), sample(me.rank, at::kShort, {4}).slice(0, 0, 4, 2)).wait();
    for (int rank = 0; rank < me.size; ++rank) {
      EXPECT_TRUE(same_bits(table.select(1, rank), sample(rank, at::kShort, {4}).slice(0, 0, 4, 2)));
    }

    if (me.rank == 0) me.group.send(sample(0, at::kFloat, {2, 3}).t(), Member::global(1)).wait();
    if (me.rank == 1) {
      const auto received = at::zeros({3, 4}).slice(1, 0, 4, 2);
      me.group.receive(received, Member::global(0)).wait();
      EXPECT_TRUE(same_bits(received, sample(0, at::kFloat, {2, 3}).t()));
    }

    // A future knows when the result is in the tensor, too.
    const auto future_sum = at::ones({2, 2}).slice(1, 0, 2, 2);
    me.group.all_reduce(future_sum).handle()->getFuture()->wait();
    EXPECT_TRUE(same_bits(future_sum, at::full({2, 1}, me.size, at::kFloat)));
  });
}

// M1: c10d promises nothing about a reduce's tensor on the other ranks, and neither do we; the thread backend leaves
// it.
TEST_P(CollectiveTest, ReduceChangesTheRootAlone) {
  run([](TestRank& me) {
    const auto tensor = sample(me.rank, at::kLong, {2, 2});
    me.group.reduce(tensor).wait();
    if (me.rank == 0) EXPECT_TRUE(same_bits(tensor, reduction_of(samples(me.size, at::kLong, {2, 2}), ReduceOp::sum)));
    if (me.rank != 0 && !is_gloo()) EXPECT_TRUE(same_bits(tensor, sample(me.rank, at::kLong, {2, 2})));
  });
}

TEST_P(CollectiveTest, CallsMayBeInFlightTogether) {
  run([](TestRank& me) {
    Tensors tensors;
    std::vector<Work> works;
    for (int call = 0; call < 10; ++call) {
      tensors.push_back(at::full({4}, me.rank + call, at::kLong));
      works.push_back(me.group.all_reduce(tensors.back()));
    }
    for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
    const int ranks = me.size * (me.size - 1) / 2;
    for (int call = 0; call < 10; ++call) {
      EXPECT_TRUE(works[call].is_completed());
      EXPECT_TRUE(same_bits(tensors[call], at::full({4}, ranks + me.size * call, at::kLong)));
    }
  });
}

TEST_P(CollectiveTest, MatchesMessagesByTag) {
  run([](TestRank& me) {
    const auto& group = me.group;
    if (me.rank == 0) {
      std::vector<Work> works;
      for (const int tag : {1, 2, 3})
        works.push_back(group.send(at::full({2}, tag, at::kFloat), Member::global(1), {.tag = tag}));
      for (auto& work : works) work.wait();
    } else if (me.rank == 1) {
      for (const int tag : {3, 1, 2}) {
        const auto tensor = at::zeros({2});
        group.receive(tensor, Member::global(0), {.tag = tag}).wait();
        EXPECT_TRUE(same_bits(tensor, at::full({2}, tag, at::kFloat)));
      }
    }
    group.barrier().wait();
    if (me.rank != 0) group.send(at::full({1}, me.rank, at::kLong), Member::global(0), {.tag = 9}).wait();
    std::set<int> senders;
    for (int i = 1; me.rank == 0 && i < me.size; ++i) {
      const auto tensor = at::zeros({1}, at::kLong);
      auto work = group.receive_from_any(tensor, {.tag = 9});
      work.wait();
      EXPECT_EQ(tensor.item<std::int64_t>(), work.source_rank());
      senders.insert(work.source_rank());
    }
    if (me.rank == 0) EXPECT_EQ(senders.size(), static_cast<std::size_t>(me.size - 1));
  });
}

// M11: both orders, one element and 4 MiB, three in flight.
TEST_P(CollectiveTest, NeighboursMayAllSendFirstOrAllReceiveFirst) {
  run([](TestRank& me) {
    const auto next = Member::global((me.rank + 1) % me.size);
    const int before = (me.rank + me.size - 1) % me.size;
    for (const std::int64_t elements : {1, 1 << 20}) {
      for (const bool send_first : {true, false}) {
        Tensors received;
        std::vector<Work> works;
        for (int tag = 0; tag < 3; ++tag) {
          received.push_back(at::zeros({elements}));
          const auto sent = at::full({elements}, me.rank + tag, at::kFloat);
          if (send_first) works.push_back(me.group.send(sent, next, {.tag = tag}));
          works.push_back(me.group.receive(received.back(), Member::global(before), {.tag = tag}));
          if (!send_first) works.push_back(me.group.send(sent, next, {.tag = tag}));
        }
        for (auto& work : works) work.wait();
        for (int tag = 0; tag < 3; ++tag)
          EXPECT_TRUE(same_bits(received[tag], at::full({elements}, before + tag, at::kFloat)));
      }
    }
  });
}

TEST_P(CollectiveTest, SubgroupsCountTheirRanksInTheOrderGiven) {
  run([](TestRank& me) {
    std::vector<int> backwards;
    for (int rank = me.size - 1; rank >= 0; --rank) backwards.push_back(rank);
    const auto reversed = me.group.new_group(backwards);
    EXPECT_EQ(reversed.rank(), me.size - 1 - me.rank);
    const auto gathered = at::zeros({me.size}, at::kLong);
    reversed.all_gather(gathered, at::full({1}, me.rank, at::kLong)).wait();
    EXPECT_TRUE(same_bits(gathered, at::tensor(std::vector<std::int64_t>(backwards.begin(), backwards.end()))));

    // Everybody alone: groups of one, which bear one name and still are apart.
    ProcessGroup alone;
    for (int rank = 0; rank < me.size; ++rank) {
      const auto group = me.group.new_group({rank}, "alone");
      EXPECT_EQ(static_cast<bool>(group), rank == me.rank);
      if (group) alone = group;
    }
    const auto tensor = at::full({1}, me.rank);
    alone.all_reduce(tensor).wait();
    alone.barrier().wait();
    EXPECT_TRUE(same_bits(tensor, at::full({1}, me.rank)));
  });
}

// The rows of a mesh: several groups of one name, side by side, and groups of such a group.
TEST_P(CollectiveTest, SubgroupsOfOneNameAreApart) {
  if (GetParam().size < 4) return;
  run([](TestRank& me) {
    std::vector<int> low;
    std::vector<int> high;
    for (int rank = 0; rank < me.size; ++rank) (rank < me.size / 2 ? low : high).push_back(rank);
    const auto first = me.group.new_group(low, "tensor");
    const auto second = me.group.new_group(high, "tensor");
    const auto& mine = first ? first : second;
    const auto tensor = at::full({1}, me.rank, at::kLong);
    mine.all_reduce(tensor).wait();
    const auto& ranks = first ? low : high;
    EXPECT_EQ(tensor.item<std::int64_t>(), std::accumulate(ranks.begin(), ranks.end(), 0));
    EXPECT_EQ(mine.ranks(), ranks);

    const auto pair = mine.new_group({ranks[1], ranks[0]});
    EXPECT_EQ(static_cast<bool>(pair), mine.rank() < 2);
    if (!pair) return;
    const auto root = at::full({1}, me.rank, at::kLong);
    pair.broadcast(root, {.root = Member::group(0)}).wait();
    EXPECT_EQ(root.item<std::int64_t>(), ranks[1]);
  });
}

// M9: a member is named by its rank in the world or in the group, and both mean the same source.
TEST_P(CollectiveTest, MembersAreNamedGloballyOrWithinTheGroup) {
  run([](TestRank& me) {
    std::vector<int> others;
    for (int rank = 1; rank < me.size; ++rank) others.push_back(rank);
    const auto group = me.group.new_group(others);
    if (me.rank == 0) {
      EXPECT_FALSE(group);
      EXPECT_CONTAINS(message_of<InvalidArgument>([&] { group.barrier().wait(); }), "a rank outside it");
      EXPECT_CONTAINS(message_of<InvalidArgument>([&] { static_cast<void>(group.size()); }), "outside");
      return;
    }
    for (const auto root : {Member::global(1), Member::group(0)}) {
      const auto tensor = sample(me.rank, at::kFloat, {2});
      group.broadcast(tensor, {.root = root}).wait();
      EXPECT_TRUE(same_bits(tensor, sample(1, at::kFloat, {2})));
    }
    EXPECT_EQ(group.group_rank(Member::global(me.rank)), me.rank - 1);
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { group.broadcast(at::zeros({1})).wait(); }), "one of 1");
    EXPECT_CONTAINS(message_of<InvalidArgument>(
                        [&] { group.broadcast(at::zeros({1}), {.root = Member::group(me.size - 1)}).wait(); }),
                    "from 0 to");
  });
}

TEST_P(CollectiveTest, NewGroupRefusesBadLists) {
  run([](TestRank& me) {
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { static_cast<void>(me.group.new_group({0, 0})); }), "each once");
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { static_cast<void>(me.group.new_group({})); }), "at least one");
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { static_cast<void>(me.group.new_group({me.size})); }),
                    std::to_string(me.size));
    const auto everyone = me.group.new_group(me.group.ranks());  // the count of subgroups is still the same everywhere
    everyone.barrier().wait();
  });
}

// Each is refused on all ranks alike before anything is sent, so that the group works on afterwards.
TEST_P(CollectiveTest, RefusesWhatCannotBeDone) {
  run([](TestRank& me) {
    const auto& group = me.group;
    const auto mean =
        message_of<RuntimeError>([&] { group.all_reduce(at::ones({2}, at::kLong), {.op = ReduceOp::avg}).wait(); });
    EXPECT_CONTAINS(mean, "allreduce");
    EXPECT_CONTAINS(mean, "Long");
    EXPECT_CONTAINS(mean, "mean");
    EXPECT_CONTAINS(message_of<NotSupported>([&] { group.all_reduce(at::ones({2}), {.op = ReduceOp::bor}).wait(); }),
                    "bor");
    const auto largest = [&] { group.all_reduce(at::ones({2}, at::kComplexFloat), {.op = ReduceOp::max}).wait(); };
    EXPECT_CONTAINS(message_of<NotSupported>(largest), "max of ComplexFloat");
    const auto tiny = at::ones({2}).to(at::kFloat8_e4m3fn);
    const auto reductions = {
        std::pair<std::string, std::function<void()>>{"allreduce", [&] { group.all_reduce(tiny).wait(); }},
        {"reduce", [&] { group.reduce(tiny).wait(); }},
        {"reduce_scatter",
         [&] { group.reduce_scatter(tiny, Tensors(static_cast<std::size_t>(me.size), tiny)).wait(); }}};
    for (const auto& [operation, call] : reductions) {
      const auto text = message_of<NotSupported>(call);
      EXPECT_CONTAINS(text, operation);
      EXPECT_CONTAINS(text, "Float8_e4m3fn");
    }
    if (is_gloo()) {
      EXPECT_CONTAINS(message_of<NotSupported>([&] { group.all_reduce(at::ones({2}, at::kShort)).wait(); }), "Short");
    }
    const auto meta = at::empty({2}, at::TensorOptions(at::kMeta));
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { group.all_reduce(meta).wait(); }), "meta");

    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { group.all_gather(at::zeros({3}), at::zeros({2})).wait(); }),
                    "2 for each");
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { group.all_gather(Tensors(), at::zeros({2})).wait(); }),
                    "outputs");
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { group.reduce_scatter(at::zeros({2}), at::zeros({3})).wait(); }),
                    "whole");
    EXPECT_CONTAINS(
        message_of<InvalidArgument>([&] {
          group.all_to_all(at::zeros({1}), at::zeros({1}), {.output_splits = {5}, .input_splits = {1}}).wait();
        }),
        "Number of tensor splits");

    // Through c10d's own interface, as the reducer calls.
    auto& backend = *group.handle()->getBackend(at::kCPU);
    Tensors two{at::ones({1}), at::ones({1})};
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { backend.allreduce(two)->wait(); }), "a list of 2");
    Tensors one{at::ones({1})};
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { backend.broadcast(one, {.rootRank = 70})->wait(); }), "rank 70");

    const auto still = at::ones({1});
    group.all_reduce(still).wait();
    EXPECT_EQ(still.item<float>(), static_cast<float>(me.size));
  });
}

TEST_P(CollectiveTest, CountsEveryCall) {
  run([](TestRank& me) {
    const auto& group = me.group;
    const auto size = static_cast<std::int64_t>(me.size);
    std::vector<accounting::Collective> calls;
    std::vector<accounting::Reduced> reduced;
    const auto subscription = me.account->subscribe([&](const accounting::Stamp&, const accounting::Event& event) {
      if (const auto* call = std::get_if<accounting::Collective>(&event)) calls.push_back(*call);
      if (const auto* reduction = std::get_if<accounting::Reduced>(&event)) reduced.push_back(*reduction);
    });

    const auto weights = at::ones({2, 3});
    group.label(weights, {"fc.weight", "fc.bias"}, me.size);
    group.all_reduce(weights, {.op = ReduceOp::avg}).wait();
    group.unlabel(weights.const_data_ptr());
    group.all_reduce(weights).wait();
    group.broadcast(at::ones({4}, at::kShort), {.root = Member::global(1)}).wait();
    group.all_gather(at::zeros({size * 2}, at::kLong), at::ones({2}, at::kLong)).wait();
    group.reduce_scatter(at::zeros({2}), at::ones({size * 2})).wait();
    group.all_to_all(at::zeros({size}), at::ones({size})).wait();
    group.reduce(at::ones({5})).wait();
    const bool is_root = me.rank == 0;
    group.gather(is_root ? blanks(me.size, at::kFloat, {1}) : Tensors(), at::ones({1})).wait();
    group.scatter(at::zeros({1}), is_root ? blanks(me.size, at::kFloat, {1}) : Tensors()).wait();
    group.barrier().wait();
    if (me.rank == 0) group.send(at::ones({3}), Member::global(1), {.tag = 4}).wait();
    if (me.rank == 1) group.receive(at::ones({3}), Member::global(0), {.tag = 4}).wait();

    const auto traffic = me.account->traffic();
    using Count = accounting::TrafficCount;
    EXPECT_EQ(traffic.total("allreduce"), (Count{2, 12, 48}));
    EXPECT_EQ(traffic.total("broadcast"), (Count{1, 4, 8}));
    EXPECT_EQ(traffic.total("allgather"), (Count{1, 2, 16}));
    EXPECT_EQ(traffic.total("reduce_scatter"), (Count{1, 2 * size, 8 * size}));
    EXPECT_EQ(traffic.total("alltoall"), (Count{1, size, 4 * size}));
    EXPECT_EQ(traffic.total("reduce"), (Count{1, 5, 20}));
    EXPECT_EQ(traffic.total("gather"), (Count{1, 1, 4}));
    EXPECT_EQ(traffic.total("scatter"), is_root ? (Count{1, size, 4 * size}) : (Count{1, 1, 4}));
    EXPECT_EQ(traffic.total("barrier"), (Count{1, 0, 0}));
    EXPECT_EQ(traffic.total("send"), me.rank == 0 ? (Count{1, 3, 12}) : Count{});
    EXPECT_EQ(traffic.total("recv"), me.rank == 1 ? (Count{1, 3, 12}) : Count{});
    EXPECT_EQ(traffic.counts().at({"broadcast", "world", "Short"}), (Count{1, 4, 8}));

    ASSERT_EQ(calls.size(), me.rank < 2 ? 11U : 10U);
    for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i].seq, i + 1);
    const auto& first = calls[0];
    EXPECT_EQ(first.op, "allreduce");
    EXPECT_EQ(first.group, "world");
    EXPECT_EQ(first.ranks, group.ranks());
    EXPECT_EQ(first.dtype, "Float");
    EXPECT_EQ(first.elements, 6);
    EXPECT_EQ(first.bytes, 24);
    EXPECT_EQ(first.shapes, (std::vector<std::vector<std::int64_t>>{{2, 3}}));
    EXPECT_EQ(first.reduce_op, "avg");
    EXPECT_EQ(first.peer, -1);
    EXPECT_EQ(first.label, (std::vector<std::string>{"fc.weight", "fc.bias"}));
    EXPECT_TRUE(calls[1].label.empty());
    EXPECT_EQ(calls[2].peer, 1);
    EXPECT_EQ(calls[2].reduce_op, "");
    if (me.rank < 2) {
      EXPECT_EQ(calls.back().peer, 1 - me.rank);
      EXPECT_EQ(calls.back().tag, 4);
    }
    ASSERT_EQ(reduced.size(), 1U);
    EXPECT_EQ(reduced[0].parameters, first.label);
    EXPECT_EQ(reduced[0].divisor, me.size);
    EXPECT_EQ(reduced[0].bytes, 24);

    // What is refused is not counted.
    EXPECT_THROW(group.all_reduce(at::ones({1}, at::kInt), {.op = ReduceOp::avg}).wait(), RuntimeError);
    EXPECT_EQ(me.account->traffic().since(traffic).total(), Count{});
  });
}

// One layer under c10d's reducer: gradients are the mean over the ranks, and the same bits on all of them.
TEST_P(CollectiveTest, CarriesTheReducerOfDistributedDataParallel) {
  run([](TestRank& me) {
    at::manual_seed(3);
    const Tensors parameters{at::full({4, 8}, 0.5).requires_grad_(), at::zeros({4}).requires_grad_()};
    const std::vector<std::size_t> limit{64};  // bytes: a bucket for each parameter
    const auto [buckets, sizes] = c10d::compute_bucket_assignment_by_size(parameters, limit);
    c10d::Reducer reducer(parameters, buckets, me.group.handle(), {false, false}, 1 << 20, false, false, {}, 1 << 20,
                          false, false, {});
    for (int step = 0; step < 3; ++step) {
      reducer.prepare_for_forward();
      const auto input = at::linspace(0, 1, 16).view({2, 8}) * (me.rank + 1 + step);
      const auto loss = at::linear(input, parameters[0], parameters[1]).pow(2).mean();
      reducer.prepare_for_backward({loss});
      loss.backward();
      for (const auto& parameter : parameters) {
        const auto all = blanks(me.size, at::kFloat, parameter.sizes());
        me.group.all_gather(all, parameter.grad()).wait();
        for (const auto& other : all) EXPECT_TRUE(same_bits(other, parameter.grad()));
      }
      if (step == 0) {
        // loss = mean(y^2), y = 0.5 * sum(x) for each of 4 outputs; d loss / d bias_j = sum_rows(y) / 4
        double mean = 0;
        for (int rank = 0; rank < me.size; ++rank) mean += 0.5 * 8.0 * (rank + 1) / 4 / me.size;
        EXPECT_NEAR(parameters[1].grad()[0].item<double>(), mean, 1e-5 * mean);
      }
      const at::NoGradGuard no_grad;
      for (const auto& parameter : parameters) {
        parameter.sub_(parameter.grad(), 1e-2);
        parameter.mutable_grad().reset();
      }
    }
    EXPECT_GE(me.account->traffic().total("allreduce").calls, 6);
  });
}

}  // namespace
}  // namespace lockstep::comm
