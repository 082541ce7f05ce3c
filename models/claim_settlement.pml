/* Claim settlement: a frontier with holes, settled by generations.
 *
 * One lane. Producers draw numbers, commit out of order or roll back; claims
 * read what is visible past the frontier and in the holes below it. A hole may
 * be forgotten only when its producer has ended, and generations prove that.
 *
 * Holds: no committed row is lost, none is claimed twice, no hole is dropped
 * while its producer may still commit or while its row is unclaimed.
 *
 * Reductions; each keeps every behaviour that matters, or adds some:
 * - A claim is one critical section under the lane lock and carries nothing to
 *   the next claim, so one claimer that loops stands for any number of them.
 *   CLAIMERS=2 runs two with an explicit lock to confirm it.
 * - Locking (S, L] generation by generation succeeds exactly when all are free
 *   at the last try, so success is one step. Failure is a claim that does not
 *   lock; it may do so at any time, as if a lock had failed. That also covers
 *   the moment in which a row is visible and its producer's locks are not yet
 *   released, so a commit is one step.
 * - No producer reads the claim row, so a claim commits in the step of its last
 *   effect on producers: the bump if there is one, else the look.
 * - Generations are counted from the settled one: settlement shifts every
 *   stored generation so that S is 0. Nothing at or below S is ever tested
 *   again, so all stale reads fall together on 0.
 * - Processes are guarded commands over records, and producers' records are
 *   kept sorted, so states that differ by a renaming of producers are one.
 *
 * Broken variants: LOOK_BEFORE_LOCK, NEWEST_ONLY, NO_REREAD, DROP_UNSETTLED,
 * NO_BUMP, LIMIT_IGNORED, NO_LANE_LOCK (with CLAIMERS=2).
 */

#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef NUMBERS
#define NUMBERS 4
#endif
#ifndef CLAIMERS
#define CLAIMERS 1
#endif
#ifndef HOLE_RANGES
#define HOLE_RANGES NUMBERS     /* the cap on hole ranges, at which the frontier stops */
#endif
#ifndef DEATHS
#define DEATHS 2                /* generations that claims may waste by dying after the bump */
#endif

#define bit(n)        (1 << (n))
#define upto(n)       ((1 << ((n) + 1)) - 1)
#define through(a, b) (upto(b) & ~upto(a))      /* the numbers in (a, b] */

/* Outside transactions: these survive every rollback. */
byte drawn = 0;                 /* the lane's number sequence */
byte gen = 1;                   /* the lane's generation, a fence sequence */

/* Committed rows, and rows that a committed claim row names; one bit a number. */
byte committed = 0;
byte claimed = 0;

/* The newest claim row; S is 0. */
byte F = 0;
byte H_old = 0;
byte H_new = 0;
byte L = 0;

/* Producers, and the generations that a claim holds exclusively. */
#define IDLE    0
#define READ    1               /* has read the generation, no lock yet */
#define LOCKED  2               /* has the shared lock, must re-read */
#define DRAWING 3

typedef Record {
  byte phase;
  byte seen;                    /* the generation read */
  byte shared;                  /* generations locked in share mode; one bit each */
  byte pending                  /* numbers of the open transaction; one bit each */
};
Record P[PRODUCERS];

/* The lane lock, and whether its holder also holds (S, L] exclusively. */
bool lane_locked = false;
bool settling = false;
#ifdef NEWEST_ONLY
#define LOWEST L
#else
#define LOWEST 1
#endif
#define exclusive(g) (settling && (g) >= LOWEST && (g) <= L)
#define all_shared   (P[0].shared | P[1].shared | P[PRODUCERS - 2].shared | P[PRODUCERS - 1].shared)
#define lockable     (H_old && (all_shared & through(LOWEST - 1, L)) == 0)
#ifdef NO_LANE_LOCK
#define lane_free    true
#else
#define lane_free    (!lane_locked)
#endif

#define later(a, b) \
  (P[a].phase > P[b].phase || (P[a].phase == P[b].phase && (P[a].pending > P[b].pending || \
  (P[a].pending == P[b].pending && (P[a].shared > P[b].shared || \
  (P[a].shared == P[b].shared && P[a].seen > P[b].seen))))))

hidden byte i, j, tmp;

inline swap(a, b) {
  tmp = P[a].phase;   P[a].phase = P[b].phase;     P[b].phase = tmp;
  tmp = P[a].seen;    P[a].seen = P[b].seen;       P[b].seen = tmp;
  tmp = P[a].shared;  P[a].shared = P[b].shared;   P[b].shared = tmp;
  tmp = P[a].pending; P[a].pending = P[b].pending; P[b].pending = tmp
}

inline sort_records() {
  i = 1;
  do
  :: i < PRODUCERS ->
     j = i;
     do
     :: j > 0 ->
        if
        :: later(j - 1, j) -> swap(j - 1, j)
        :: else
        fi;
        j--
     :: else -> break
     od;
     i++
  :: else -> break
  od;
  i = 0
}

proctype Producer(byte me) {
end:
  do
  :: d_step { P[me].phase == IDLE && drawn < NUMBERS ->
       P[me].seen = gen; P[me].phase = READ; sort_records() }

  :: d_step { P[me].phase == READ && !exclusive(P[me].seen) ->
       P[me].shared = P[me].shared | bit(P[me].seen);
       P[me].phase = LOCKED; sort_records() }

#ifdef NO_REREAD
  :: d_step { P[me].phase == LOCKED -> P[me].seen = 0; P[me].phase = DRAWING; sort_records() }
#else
  :: d_step { P[me].phase == LOCKED && gen != P[me].seen ->
       P[me].seen = gen; P[me].phase = READ; sort_records() }
  :: d_step { P[me].phase == LOCKED && gen == P[me].seen ->
       P[me].seen = 0; P[me].phase = DRAWING; sort_records() }
#endif

  :: d_step { P[me].phase == DRAWING && drawn < NUMBERS ->
       drawn++; P[me].pending = P[me].pending | bit(drawn); sort_records() }

  :: d_step { P[me].phase == DRAWING && P[me].pending && drawn < NUMBERS -> /* a second call */
       P[me].seen = gen; P[me].phase = READ; sort_records() }

  :: d_step { P[me].phase == DRAWING && P[me].pending -> /* commit */
       committed = committed | P[me].pending;
       P[me].pending = 0; P[me].shared = 0; P[me].phase = IDLE; sort_records() }

  :: d_step { P[me].phase == DRAWING && (P[me].pending || drawn == NUMBERS) -> /* roll back */
       P[me].pending = 0; P[me].shared = 0; P[me].phase = IDLE; sort_records() }
  od
}

hidden byte n, starts, ranges, changed;

/* The statement that looks: one snapshot, late rows first, then the frontier. */
inline look(limit) {
  n = 1;
  do
  :: n <= NUMBERS ->
     if
     :: ((H_old | H_new) & committed & bit(n)) ->
        if
        :: limit > 0 -> took = took | bit(n); limit--
        :: else -> left_late = true
        fi
     :: else
     fi;
     n++
  :: else -> break
  od;
  new_old = H_old & ~took;
  new_new = H_new & ~took;
  new_F = F;
  count_ranges(H_old | H_new);
  n = (ranges < HOLE_RANGES -> F + 1 : NUMBERS + 1);
  do
  :: n <= NUMBERS && limit > 0 ->
     if
     :: (committed & bit(n)) ->
        took = took | bit(n);
        new_new = new_new | (through(new_F, n) & ~bit(n));
        new_F = n;
        limit--
     :: else
     fi;
     n++
  :: else -> break
  od
}

inline count_ranges(set) {
  starts = (set) & ~((set) << 1);
  ranges = 0;
  do
  :: starts -> starts = starts & (starts - 1); ranges++
  :: else -> break
  od
}

inline check_dropped(holes) {
  assert((holes & committed & ~claimed & ~took) == 0);  /* the row is there and unclaimed */
  i = 0;
  do
  :: i < PRODUCERS -> assert((holes & P[i].pending) == 0); i++  /* it may still commit */
  :: else -> break
  od
}

inline shift_generations(by) {
  gen = gen - by;
  i = 0;
  do
  :: i < PRODUCERS ->
     P[i].shared = (P[i].shared >> by) & ~1;
     P[i].seen = (P[i].seen > by -> P[i].seen - by : 0);
     i++
  :: else -> break
  od;
  sort_records()
}

inline choose_limit() {
  if
  :: limit = 1
  :: limit = 2
  :: limit = NUMBERS
  fi
}

inline notice_quiet() {
  i = 0;
  quiet = (drawn == NUMBERS);
  do
  :: i < PRODUCERS -> quiet = quiet && P[i].phase == IDLE; i++
  :: else -> break
  od
}

inline settle_old_holes() {
#ifdef DROP_UNSETTLED
  settling = (H_old != 0);
#endif
#ifdef LIMIT_IGNORED
  left_late = false;
#endif
  if
  :: settling && !left_late -> settled = true; dropped = new_old; new_old = 0
  :: else
  fi
}

inline commit_claim() {
  changed = took || settled || bumped || F != new_F;
  if
  :: settled -> check_dropped(dropped)
  :: else
  fi;
  assert((took & claimed) == 0);                         /* claimed twice */
  claimed = claimed | took;
  if                       /* when nothing more can come, a claim helps or all is done */
  :: quiet && !changed && (settling || H_old == 0) ->
     assert(claimed == committed && new_old == 0 && new_new == 0)
  :: else
  fi;
  F = new_F; H_old = new_old; H_new = new_new;
  if
  :: settled -> new_L = new_L - L; shift_generations(L)
  :: else
  fi;
  L = new_L;
  end_claim()
}

inline end_claim() {
  took = 0; new_old = 0; new_new = 0; new_F = 0; new_L = 0; dropped = 0; limit = 0;
  left_late = false; settled = false; bumped = false; quiet = false;
  settling = false; lane_locked = false; phase = 0;
  n = 0
}

#define LOOKING 1
#define BUMPING 2

proctype Claimer() {
  byte phase, limit;
  byte took, new_old, new_new, new_F, new_L, dropped;
  bool left_late, settled, bumped, quiet;

end:
  do
#ifndef LOOK_BEFORE_LOCK
  /* 1 and 2: lane lock, newest claim row, every generation in (S, L] */
  :: d_step { phase == 0 && lane_free && lockable ->
       lane_locked = true; settling = true; phase = LOOKING }

  /* 3: a new statement looks. 4: settle. 5: commit, if nothing must be labelled */
  :: atomic { (phase == 0 && lane_free) || phase == LOOKING ->
       choose_limit();
       d_step {
         lane_locked = true;
         notice_quiet();
         look(limit);
         settle_old_holes();
         new_L = L;
         if
         :: new_old == 0 && new_new != 0 -> phase = BUMPING
         :: else -> commit_claim()
         fi;
         limit = 0
       }
     }
#else
  :: atomic { phase == 0 && lane_free ->
       choose_limit();
       d_step { lane_locked = true; look(limit); limit = 0; new_L = L; phase = LOOKING } }
  :: d_step { phase == LOOKING && lockable -> settling = true; phase = BUMPING }
  :: d_step { phase == LOOKING -> phase = BUMPING }
#endif

  /* 4: label the new holes and bump. 5: commit the claim row */
  :: d_step { phase == BUMPING ->
#ifdef LOOK_BEFORE_LOCK
       settle_old_holes();
#endif
       if
       :: new_old == 0 && new_new != 0 ->
          new_old = new_new; new_new = 0;
          new_L = gen;
          bumped = true;
#ifndef NO_BUMP
          gen++;
#endif
          assert(gen < 8)
       :: else
       fi;
       commit_claim() }

  /* or die: the bump stays */
  :: d_step { phase == BUMPING && gen <= DEATHS -> gen++; end_claim() }
  od
}

init {
  atomic {
    i = 0;
    do
    :: i < PRODUCERS -> run Producer(i); i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < CLAIMERS -> run Claimer(); i++
    :: else -> break
    od
  }
}
