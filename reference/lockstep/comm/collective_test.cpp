// What every backend moves and reduces, operation by operation: run between threads and, over Gloo, between processes.
// Each rank computes by itself what the others bring, and so what the operation must give.
#include <ATen/Functions.h>

#include <chrono>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "lockstep/comm/comm_test_support.h"
#include "lockstep/comm/test_tensors.h"

namespace lockstep::comm {
namespace {

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

// M1: c10d promises nothing about a reduce's tensor on the other ranks, and Gloo leaves partial sums in it; we do not.
TEST_P(CollectiveTest, ReduceChangesTheRootAlone) {
  run([](TestRank& me) {
    const auto tensor = sample(me.rank, at::kLong, {2, 2});
    me.group.reduce(tensor).wait();
    if (me.rank == 0) EXPECT_TRUE(same_bits(tensor, reduction_of(samples(me.size, at::kLong, {2, 2}), ReduceOp::sum)));
    if (me.rank != 0) EXPECT_TRUE(same_bits(tensor, sample(me.rank, at::kLong, {2, 2})));
  });
}

}  // namespace
}  // namespace lockstep::comm
