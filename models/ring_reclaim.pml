/* Ring reclaim: rotation, reclaim and evacuation of a ring of chapters.
 *
 * Chapter k lives in slot k mod SLOTS. Head and tail are fence sequences: read
 * and moved outside transactions. `reclaimed` is a transactional marker. One
 * lane; its frontier is the set of rows that claims have seen. Every row is one
 * number, never drawn again, so a completion's key (slot, lane, seq) is the row.
 *
 * Holds:
 *   1 no ready row is truncated before its completion committed,
 *   2 no row is claimed twice, lost between claims, or run after it was moved,
 *   3 no attempt is closed twice and none in a chapter that was reclaimed,
 *   4 the frontier that a claim starts from is the one last committed,
 *   5 no claim row is truncated while one of its items is open.
 *
 * A statement's snapshot may be older than its lock wait, and TRUNCATE does not
 * respect snapshots: a claim notes the saved lane state first and reads the
 * claim children later. TRUNCATE's exclusive locks, its effect and the commit
 * are one step that needs every other holder gone; it may time out instead,
 * which undoes the transaction but not the moved tail.
 *
 * Broken variants: CLOSER_CHECKS_FIRST, PROVE_BEFORE_LOCK, NO_SAVE,
 * NO_LANE_LOCK, NO_CLAIM_CHILD_LOCK, ENQUEUE_UNCHECKED, HEAD_BEFORE_LOOK,
 * ROTATE_BY_TAIL, TAIL_LATE, EVACUATE_UNLOCKED, STATE_HEAD_BEFORE_LOCK
 * (with CLAIMERS=2).
 */

#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef CHAPTERS
#define CHAPTERS 3              /* 0 .. CHAPTERS - 1 */
#endif
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef CLOSERS
#define CLOSERS 2
#endif

#ifndef CLAIMERS
#define CLAIMERS 1              /* one that loops is as good as several, but for what it reads before its lock */
#endif

#define ROWS     (PRODUCERS + 1)                /* evacuation enters one row again */
#define MOVED_TO PRODUCERS
#define bit(n)   (1 << (n))
#define slot(c)  ((c) % SLOTS)

/* Outside transactions. */
byte head = 0;
byte tail = 0;

byte started = 0;               /* producers that began */

/* Committed. Rows are bits; children are indexed by slot. */
byte reclaimed = 0;             /* chapters below are truncated; this one is the oldest */
byte ready[SLOTS] = 0;
byte completion[SLOTS] = 0;
byte claim_state[SLOTS] = 0;    /* the frontier in the newest claim row there; 0: no row */
byte claim_items[SLOTS] = 0;    /* what the claim rows there handed out */
byte saved = 0;                 /* the frontier saved in lane */
byte pre_closed = 0;
byte chapter[ROWS] = 0;
byte committed = 0;              /* ready rows that committed, truncated ones included */

/* Locks held to the end of a transaction. */
byte ready_writers[SLOTS] = 0;
byte claim_writers[SLOTS] = 0;
byte completion_writers[SLOTS] = 0;
bool claim_reads = false;       /* a claim holds ACCESS SHARE on every child */
byte shared_slot = SLOTS;       /* SHARE on children of this slot; SLOTS: none */
bool lane_locked = false;
byte inserting = 0;             /* completion keys of open transactions */

/* What really happened. */
byte handed_out = 0;
byte closed = 0;
byte moved = 0;
byte frontier = 0;              /* of the claim that committed last */

#if SLOTS == 2
#define any_slot(a) (a[0] | a[1])
#else
#define any_slot(a) (a[0] | a[1] | a[2])
#endif
#define visible any_slot(ready)
#define newest  any_slot(claim_state)    /* frontiers only grow, so the newest is their union */
#define lane_state(otherwise) (newest -> newest : otherwise)

#ifdef ENQUEUE_UNCHECKED
#define chapter_lives(c) true
#else
#define chapter_lives(c) ((c) >= tail)
#endif

/* Producers are alike, so each first reads the head after the one before it did. */
proctype Producer(byte me) {
  byte c;

  started == me -> started++;
  do
  :: c = head;
     d_step { shared_slot != slot(c) -> ready_writers[slot(c)]++ };
     if
     :: d_step { !chapter_lives(c) -> ready_writers[slot(c)]--; c = 0 }
     :: chapter_lives(c) ->
        if
        :: d_step { true -> ready_writers[slot(c)]--; c = 0 }        /* rolled back */
        :: d_step { true ->
             assert(c >= reclaimed);
             ready[slot(c)] = ready[slot(c)] | bit(me);
             committed = committed | bit(me);
             chapter[me] = c;
             ready_writers[slot(c)]--;
             c = 0
           };
           break
        fi
     fi
  od
}

#ifdef NO_CLAIM_CHILD_LOCK
#define claim_child_free(s) true
#define may_write_claim(s)  true
#else
#define claim_child_free(s) (claim_writers[s] == 0)
#define may_write_claim(s)  (shared_slot != (s))
#endif
#define unseen (visible & ~base)

inline look(rows) {
  seen = rows;
  took = seen & ~pre_closed
}

inline finish_claim() {
  base = 0; seen = 0; took = 0; h = 0; claim_reads = false; lane_locked = false
}

proctype Claimer() {
  byte snapshot, base, seen, took, h;

end:
  do
#ifdef STATE_HEAD_BEFORE_LOCK
  :: h = head;
     d_step { !lane_locked -> lane_locked = true };
#else
  :: d_step { !lane_locked -> lane_locked = true };
     h = head;
#endif
     d_step { base = claim_state[slot(h)]; h = 0; snapshot = saved };    /* the head's child alone */
     d_step {                   /* the statement may have waited for a truncation */
       base = (base -> base : lane_state(snapshot));
       snapshot = 0;
       claim_reads = true;
#ifndef FRONTIER_MAY_RETURN
       assert(base == frontier);                                     /* 4 */
#endif
       assert((base & ~(handed_out | closed)) == 0)                  /* 2 */
     };
#ifdef HEAD_BEFORE_LOOK
     h = head;
#endif
     if
     :: d_step { unseen == 0 -> finish_claim() }
     :: atomic { unseen != 0 ->
          if
          :: d_step { true -> look(unseen) }
          :: d_step { unseen & bit(0) -> look(bit(0)) }
          :: d_step { unseen & bit(1) -> look(bit(1)) }
          :: d_step { unseen & bit(2) -> look(bit(2)) }
          fi
        };
#ifndef HEAD_BEFORE_LOOK
        h = head;
#endif
        d_step { may_write_claim(slot(h)) -> claim_writers[slot(h)]++ };
        if
        :: d_step { true -> claim_writers[slot(h)]--; finish_claim() }   /* rolled back */
        :: d_step { true ->
             assert((took & handed_out) == 0);                       /* 2 */
             assert((took & moved) == 0);                            /* 2 */
             claim_state[slot(h)] = base | seen;
             claim_items[slot(h)] = claim_items[slot(h)] | took;
             handed_out = handed_out | took;
             frontier = base | seen;
             claim_writers[slot(h)]--;
             finish_claim() }
        fi
     fi
  od
}

/* A completion, a retry, a rescue or, while the row waits, its cancellation. It
 * may act on what it knew long ago: a row that committed once is enough. */
#define row_slot       slot(chapter[r])
#define key_free(r)    (((completion[slot(chapter[r])] | inserting) & bit(r)) == 0)
#define chapter_gone   (chapter[r] < tail)

inline insert_completion(row) {
  r = row;
  inserting = inserting | bit(r);
  completion_writers[row_slot]++;
  cancels = (handed_out & bit(r)) == 0
}

inline finish_closing() {
  inserting = inserting & ~bit(r);
  completion_writers[row_slot]--;
  r = 0; cancels = false
}

proctype Closer() {
  byte r;
  bool cancels;

end:
  do
#ifdef CLOSER_CHECKS_FIRST
  :: if
     :: committed & bit(0) -> r = 0
     :: committed & bit(1) -> r = 1
     fi;
     if
     :: chapter_gone -> r = 0
     :: !chapter_gone ->
        if
        :: d_step { key_free(r) -> insert_completion(r) }; goto close
        :: completion[row_slot] & bit(r) -> r = 0
        fi
     fi
#else
  /* A committed key makes it lose; a key in an open transaction makes it wait. */
  :: if
     :: d_step { (committed & bit(0)) && key_free(0) -> insert_completion(0) }
     :: d_step { (committed & bit(1)) && key_free(1) -> insert_completion(1) }
     :: d_step { (committed & bit(2)) && key_free(2) -> insert_completion(2) }
     fi;
     if
     :: d_step { chapter_gone -> finish_closing() }
     :: !chapter_gone -> goto close
     fi
#endif
  od;

close:
  if
  :: d_step { true -> finish_closing() }                             /* rolled back */
  :: d_step { true ->
       assert((closed & bit(r)) == 0);                               /* 3 */
       assert(chapter[r] >= reclaimed);                              /* 3 */
       completion[row_slot] = completion[row_slot] | bit(r);
       closed = closed | bit(r);
       pre_closed = (cancels -> pre_closed | bit(r) : pre_closed);
       finish_closing() }
  fi;
  goto end
}

/* One at a time: the ring's advisory lock. */
#define oldest     slot(reclaimed)
#define lies_here  (newest && claim_state[oldest] == newest)
#define proved     (ready[oldest] == completion[oldest])    /* two counts */
#define unheld     (ready_writers[oldest] == 0 && completion_writers[oldest] == 0 && \
                    claim_writers[oldest] == 0 && !claim_reads)
#ifdef ROTATE_BY_TAIL
#define next_is_empty (head + 1 < tail + SLOTS)
#else
#define next_is_empty (head + 1 < reclaimed + SLOTS)
#endif
#define waits(r)   (ready[oldest] & ~completion[oldest] & ~lane_state(saved) & bit(r))

inline leave() {
  lane_locked = lane_locked && !locks_lane;
  locks_lane = false;
  to_save = 0; r = 0;
  shared_slot = SLOTS
}

inline truncate_and_commit() {
  assert((ready[oldest] & ~closed) == 0);                            /* 1 */
  assert((claim_items[oldest] & ~closed) == 0);                      /* 5 */
  pre_closed = pre_closed & ~ready[oldest];
  ready[oldest] = 0; completion[oldest] = 0;
  claim_state[oldest] = 0; claim_items[oldest] = 0;
  saved = (to_save -> to_save : saved);
  reclaimed++
}

#ifdef EVACUATE_UNLOCKED
#define may_evacuate true
#define lock_for_evacuation() skip
#else
#define may_evacuate (!lane_locked)
#define lock_for_evacuation() lane_locked = true; locks_lane = true
#endif

inline move_row() {
  assert((closed & bit(r)) == 0);                                    /* 3 */
  completion[oldest] = completion[oldest] | bit(r);
  closed = closed | bit(r);
  moved = moved | bit(r);
  pre_closed = pre_closed | bit(r);
  ready[slot(head)] = ready[slot(head)] | bit(MOVED_TO);
  committed = committed | bit(MOVED_TO);
  chapter[MOVED_TO] = head
}

proctype Tender() {
  byte to_save, r;
  bool locks_lane;

end:
  do
  /* rotate_chapter */
  :: d_step { head + 1 < CHAPTERS && next_is_empty ->
       assert(ready[slot(head + 1)] == 0 && completion[slot(head + 1)] == 0);
       head++ }

  /* reclaim_chapter; a lock that is not free at once may be a time-out */
  :: reclaimed < head ->
#ifdef PROVE_BEFORE_LOCK
     proved;
     if
     :: d_step { ready_writers[oldest] == 0 && claim_child_free(oldest) -> shared_slot = oldest }
     :: goto again
     fi;
#else
     d_step { ready_writers[oldest] == 0 && claim_child_free(oldest) -> shared_slot = oldest };
     if
     :: proved
     :: d_step { !proved -> leave() }; goto again
     fi;
#endif
#ifndef NO_SAVE
     if                          /* save_lanes: which lanes, the lock, then read again */
     :: !lies_here
     :: lies_here ->
#ifndef NO_LANE_LOCK
        if
        :: d_step { !lane_locked -> lane_locked = true; locks_lane = true }
        :: d_step { lane_locked -> leave() }; goto again
        fi;
#endif
        to_save = (lies_here -> newest : 0)
     fi;
#endif
#ifndef TAIL_LATE
     tail = reclaimed + 1;
#endif
     if
     :: d_step { unheld -> truncate_and_commit(); leave() }
     :: d_step { true -> leave() }                                   /* lock_timeout, crash */
     fi;
#ifdef TAIL_LATE
     tail = reclaimed
#endif

  /* evacuate_chapter, move_waiting */
  :: d_step { reclaimed < head && moved == 0 && (waits(0) || waits(1)) && may_evacuate ->
       lock_for_evacuation() };
     if
     :: d_step { waits(0) && key_free(0) -> r = 0; inserting = inserting | bit(r) }
     :: d_step { waits(1) && key_free(1) -> r = 1; inserting = inserting | bit(r) }
     :: d_step { !(waits(0) && key_free(0)) && !(waits(1) && key_free(1)) -> leave() }; goto again
     fi;
     if
     :: d_step { true -> move_row(); inserting = inserting & ~bit(r); leave() }
     :: d_step { true -> inserting = inserting & ~bit(r); leave() }  /* rolled back */
     fi;
again:
     skip
  od
}

init {
  byte i;
  atomic {
    do
    :: i < PRODUCERS -> run Producer(i); i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < CLOSERS -> run Closer(); i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < CLAIMERS -> run Claimer(); i++
    :: else -> break
    od;
    i = 0;
    run Tender()
  }
}
