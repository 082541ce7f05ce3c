/* Materialization: the authority of an open attempt moves from its claim item to a lease row.
 *
 * Until then whoever inserts the completion of the ready row has closed the
 * attempt. Materializing inserts that completion itself, says "materialized" in
 * it, and writes the lease in the same transaction; from then on whoever deletes
 * the lease has closed the attempt. Closers do not know which of the two they
 * will meet. The chapter of the ready row may be reclaimed as soon as its
 * completion is there, while the attempt is still open. A callback of the lease
 * is resolved from outside, twice, or times out.
 *
 * Holds:
 *   together   the caller's rows are committed if and only if its completion is;
 *              an open attempt always has an authority that a closer can find,
 *   assertions no attempt is closed twice; whoever is told "stale" or "ended" is
 *              told the truth; a callback is resolved once, and a resolution that
 *              was accepted as the end of the attempt is its end.
 *
 * Broken variants: WITHOUT_KEY, TWO_TRANSACTIONS, SAME_STATEMENT, TAIL_UNCHECKED,
 * LEASE_UNSEEN, RESOLVED_TWICE.
 */

#ifndef RESOLVERS
#define RESOLVERS 2
#endif
#ifndef BATCHES
#define BATCHES 1
#endif

#define FREE 0                  /* the key of the ready row's completion */
#define CLOSED 1
#define MATERIALIZED 2

#define OPEN 0                  /* what really became of the attempt */
#define BY_CALLER 1
#define BY_BATCH 2
#define BY_RESCUE 3
#define BY_CALLBACK 4

#define NOTHING 0               /* the callback */
#define PENDING 1
#define RESOLVED 2

byte key = FREE;                /* committed */
bool inserting = false;         /* an open transaction holds the key */
bool reclaimed = false;         /* the chapter was truncated: the key is free again, and must not be used */
bool lease = false;             /* committed */
bool deleting = false;          /* an open transaction has deleted the lease */
bool locked = false;            /* the attempt's advisory lock */
byte callback = NOTHING;
bool resolving = false;         /* an open transaction has updated the callback */
byte outcome = OPEN;
bool business = false;

ltl together { [] ((business == (outcome == BY_CALLER)) &&
                   (outcome != OPEN || lease || (key == FREE && !reclaimed))) }

#ifdef TAIL_UNCHECKED
#define chapter_gone false
#else
#define chapter_gone reclaimed
#endif

inline lock()   { d_step { !locked -> locked = true } }
inline unlock() { locked = false }

inline finish(how) {
  assert(outcome == OPEN);
  outcome = how;
  business = (business || how == BY_CALLER)
}

/* Under the attempt lock, in a statement of its own: it sees what the lock's last holder committed. */
inline close_lease(how) {
#ifdef SAME_STATEMENT
  if
  :: !seen -> assert(outcome != OPEN)           /* stale */
  :: seen ->
#endif
  if
  :: d_step { lease && !deleting -> deleting = true };
     if
     :: d_step { true -> deleting = false; lease = false; finish(how) }    /* COMMIT */
     :: deleting = false                                                /* ROLLBACK */
     fi
  :: !lease -> assert(outcome != OPEN)          /* stale */
  fi
#ifdef SAME_STATEMENT
  fi
#endif
}

/* Insert the completion, or wait for the transaction that holds its key. */
inline insert(how, lock_late) {
  if
  :: chapter_gone -> late = true                /* it was closed or materialized before */
  :: !chapter_gone ->
     if
     :: d_step { key == FREE && !inserting -> inserting = true };
        if
        :: d_step { chapter_gone -> inserting = false }                 /* 40001 */
        :: !chapter_gone ->
           if
           :: d_step { true -> inserting = false; key = CLOSED; finish(how) }
           :: inserting = false                                         /* ROLLBACK */
           fi
        fi
     :: key == CLOSED -> assert(outcome != OPEN)                        /* stale */
     :: key == MATERIALIZED -> late = true
     :: chapter_gone && !inserting -> late = true                       /* truncated while we waited */
     fi
  fi;
  if
  :: late && lock_late -> lock(); close_lease(how); unlock()
  :: late && !lock_late -> close_lease(how)
  :: else
  fi
}

/* complete_job in the caller's transaction; the lock is held to its end. */
proctype Caller() {
  bool late, seen;

  lock();
  seen = lease;
  insert(BY_CALLER, false);
  unlock()
}

/* complete_jobs and finish_jobs: no lock, unless the attempt turns out to be materialized. They only try then, and are
   repeated while it is held, which comes to waiting for it. */
proctype Batch() {
  bool late, seen;

  seen = lease;
  insert(BY_BATCH, true)
}

/* The rescue of a lost worker: try-lock, then like any closer. */
proctype Rescue() {
  bool late, seen;

  if
  :: lock();
     seen = lease;
     insert(BY_RESCUE, false);
     unlock()
  :: locked                                     /* a commit may be in flight: next time */
  fi
}

/* A handler that registers a callback, or the tender that evacuates a chapter. */
proctype Materializer() {
  lock();
  if
  :: chapter_gone                               /* stale */
  :: !chapter_gone ->
#ifdef WITHOUT_KEY
     if
     :: d_step { key == FREE && !inserting -> lease = true; callback = PENDING }
     :: key != FREE
     fi
#else
     if
     :: d_step { key == FREE && !inserting -> inserting = true };
        if
        :: d_step { chapter_gone -> inserting = false }                 /* 40001 */
        :: !chapter_gone ->
           if
#ifdef TWO_TRANSACTIONS
           :: d_step { true -> inserting = false; key = MATERIALIZED };
              d_step { lease = true; callback = PENDING }
#else
           :: d_step { true -> inserting = false; key = MATERIALIZED; lease = true; callback = PENDING }
#endif
           :: inserting = false                                         /* ROLLBACK */
           fi
        fi
     :: key != FREE                             /* closed, or materialized before */
     fi
#endif
  fi;
  unlock()
}

/* resolve_callback: resume keeps the attempt open, the others close it. */
proctype Resolver() {
  bool closes;

end:
  callback != NOTHING;
  if
  :: closes = true
  :: closes = false
  fi;
  if
  :: callback == RESOLVED -> goto over          /* already_resolved */
  :: callback == PENDING
  fi;
  lock();
  if
#ifndef LEASE_UNSEEN
  :: !lease -> assert(outcome != OPEN)          /* ended */
#endif
  :: d_step { (lease
#ifdef LEASE_UNSEEN
       || !lease
#endif
       ) && !resolving && callback == PENDING -> resolving = true };
     if
     :: d_step { true ->                        /* COMMIT */
          resolving = false;
          assert(callback == PENDING);
          callback = RESOLVED;
          if
          :: closes -> lease = false; finish(BY_CALLBACK)
          :: else
          fi }
     :: resolving = false                       /* ROLLBACK */
     fi
#ifdef RESOLVED_TWICE
  :: d_step { lease && !resolving ->            /* without "where resolution is null" */
       assert(callback == PENDING); callback = RESOLVED }
#endif
  :: lease && !resolving && callback == RESOLVED        /* already_resolved */
  fi;
  unlock();
over:
  skip
}

proctype Timeout() {
end:
  d_step { callback == PENDING && !resolving -> callback = RESOLVED }
}

/* Every ready row of the chapter has its completion, and nobody inserts. */
proctype Reclaimer() {
end:
  d_step { key != FREE && !inserting && !reclaimed -> reclaimed = true; key = FREE }
}

init {
  byte i;
  atomic {
    run Caller();
    i = 0;
    do
    :: i < BATCHES -> run Batch(); i++
    :: else -> break
    od;
    run Rescue();
    run Materializer();
    i = 0;
    do
    :: i < RESOLVERS -> run Resolver(); i++
    :: else -> break
    od;
    run Timeout();
    run Reclaimer();
    i = 0
  }
}
