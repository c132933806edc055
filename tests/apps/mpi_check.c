// SPDX-License-Identifier: BSD-2-Clause
// What MPI programs do between their ranks, each result compared with what it must be: messages of
// all sizes round a ring, many at once whose tags are received backwards, collectives, and
// one-sided operations. Ends with "mpi_check: N ranks" from rank 0, or aborts where something is
// wrong.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The window's size is a multiple of 16 bytes: where it is not, MPICH 4.0.2 puts 8 bytes beside.
enum { kLargest = 1 << 20, kAtOnce = 64, kSmall = 100, kWindow = 64, kCounter = kWindow - 1 };

static int rank, ranks;

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "mpi_check: rank %d: wrong: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Which byte stands at `at` of a message from `sender`.
static unsigned char byte_of(int sender, int round, int at) {
  return (unsigned char)(sender * 31 + round * 7 + at + (at >> 8));
}

static void fill(unsigned char* bytes, int count, int round) {
  for (int i = 0; i < count; ++i) bytes[i] = byte_of(rank, round, i);
}

static void compare(const unsigned char* bytes, int count, int sender, int round,
                    const char* what) {
  for (int i = 0; i < count; ++i) require(bytes[i] == byte_of(sender, round, i), what);
}

// Eager and by rendezvous: the libraries change their protocol several times on the way up.
static void ring(void) {
  unsigned char* out = malloc(kLargest + 1);
  unsigned char* in = malloc(kLargest + 1);
  const int next = (rank + 1) % ranks, former = (rank + ranks - 1) % ranks;
  int round = 0;
  for (int bytes = 0; bytes <= kLargest; bytes = bytes * 8 + 1, ++round) {
    fill(out, bytes, round);
    memset(in, 0, (size_t)bytes);
    MPI_Status status;
    MPI_Sendrecv(out, bytes, MPI_BYTE, next, round, in, bytes, MPI_BYTE, former, round,
                 MPI_COMM_WORLD, &status);
    int arrived = -1;
    MPI_Get_count(&status, MPI_BYTE, &arrived);
    require(arrived == bytes, "the length of a message");
    compare(in, bytes, former, round, "a message round the ring");
  }
  free(in);
  free(out);
}

// Received in the reverse order, so that all but one come unexpected.
static void tags_backwards(void) {
  static unsigned char out[kAtOnce][kSmall], in[kAtOnce][kSmall];
  const int next = (rank + 1) % ranks, former = (rank + ranks - 1) % ranks;
  MPI_Request sends[kAtOnce];
  for (int tag = 0; tag < kAtOnce; ++tag) {
    fill(out[tag], kSmall, tag);
    MPI_Isend(out[tag], kSmall, MPI_BYTE, next, tag, MPI_COMM_WORLD, &sends[tag]);
  }
  for (int tag = kAtOnce - 1; tag >= 0; --tag) {
    MPI_Recv(in[tag], kSmall, MPI_BYTE, former, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compare(in[tag], kSmall, former, tag, "a message by its tag");
  }
  MPI_Waitall(kAtOnce, sends, MPI_STATUSES_IGNORE);
}

static void collectives(void) {
  long sum = 0;
  const long own = rank + 1L;
  MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  require(sum == ranks * (ranks + 1L) / 2, "the sum over all ranks");

  enum { kEach = 10000 };
  int* out = malloc((size_t)ranks * kEach * sizeof *out);
  int* in = malloc((size_t)ranks * kEach * sizeof *in);
  for (int to = 0; to < ranks; ++to) {
    for (int i = 0; i < kEach; ++i) out[to * kEach + i] = (rank * ranks + to) * kEach + i;
  }
  MPI_Alltoall(out, kEach, MPI_INT, in, kEach, MPI_INT, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from) {
    for (int i = 0; i < kEach; ++i) {
      require(in[from * kEach + i] == (from * ranks + rank) * kEach + i, "all to all");
    }
  }
  if (rank == 0) memcpy(in, out, kEach * sizeof *in);
  MPI_Bcast(in, kEach, MPI_INT, 0, MPI_COMM_WORLD);
  for (int i = 0; i < kEach; ++i) require(in[i] == i, "a broadcast");
  free(in);
  free(out);
}

// Every rank puts into its slot at each other, reads it back, and all add to a counter of rank 0.
static void one_sided(void) {
  long* memory = NULL;
  MPI_Win window;
  MPI_Win_allocate((MPI_Aint)(kWindow * sizeof *memory), sizeof *memory, MPI_INFO_NULL,
                   MPI_COMM_WORLD, &memory, &window);
  memset(memory, 0, kWindow * sizeof *memory);
  MPI_Barrier(MPI_COMM_WORLD);  // a fence that ends no epoch need not be one (MPI 12.5.1)
  MPI_Win_fence(0, window);
  const long own = 1000L + rank, one = 1;
  for (int to = 0; to < ranks; ++to) MPI_Put(&own, 1, MPI_LONG, to, rank, 1, MPI_LONG, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < ranks; ++i) require(memory[i] == 1000L + i, "what was put");

  long read[kWindow] = {0};
  MPI_Get(read, ranks, MPI_LONG, (rank + 1) % ranks, 0, ranks, MPI_LONG, window);
  for (int i = 0; i < 10; ++i) {
    MPI_Accumulate(&one, 1, MPI_LONG, 0, kCounter, 1, MPI_LONG, MPI_SUM, window);
  }
  MPI_Win_fence(0, window);
  for (int i = 0; i < ranks; ++i) require(read[i] == 1000L + i, "what was read");
  if (rank == 0) require(memory[kCounter] == 10L * ranks, "what was added up");
  MPI_Win_free(&window);
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require(ranks < kWindow, "more ranks than this program is made for");
  ring();
  tags_backwards();
  collectives();
  one_sided();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("mpi_check: %d ranks\n", ranks);
  MPI_Finalize();
  return 0;
}
