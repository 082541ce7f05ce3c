/* Completion against rescue: who closes an attempt, and what may be believed.
 *
 * A handler's own transaction writes business rows and calls complete_job. The
 * worker may die, its client may lose the answer, and the server may go on with
 * a transaction whose client is gone. Meanwhile rescue closes the attempt and
 * lets the next one run, and the executor asks the database what happened.
 *
 * Holds:
 *   together   an attempt's business rows are committed if and only if its
 *              completion is, and at most one attempt of the job commits any,
 *   assertions no attempt is closed twice or closed after its chapter was
 *              reclaimed; the executor believes a completion only if there is
 *              one, and a retry only if it is its own; the unknown is neither,
 *   ends       the job ends (weak fairness; with FINITE_ROLLBACKS).
 *
 * The completion's key is the fence. NO_ATTEMPT_LOCK shows that safety does not
 * rest on the advisory lock, which only keeps others from waiting on the key.
 *
 * Broken variants: RESCUE_WITHOUT_KEY, RESCUE_IGNORES_CONFLICT, RETURNS_FALSE,
 * TWO_TRANSACTIONS, TAIL_UNCHECKED, UNKNOWN_IS_FAILURE, UNKNOWN_IS_COMPLETION.
 */

#ifndef ATTEMPTS
#define ATTEMPTS 2              /* max_attempts of the job */
#endif
#ifndef SESSIONS
#define SESSIONS 1              /* transactions that one handler may begin */
#endif
#ifndef RESCUERS
#define RESCUERS 1
#endif

#define OPEN      0
#define COMPLETED 1
#define RETRIED   2
#define RESCUED   3

/* By attempt, from 1. */
bool ready[ATTEMPTS + 2] = false;       /* the attempt's ready row committed */
bool claimed[ATTEMPTS + 2] = false;
byte closed[ATTEMPTS + 2] = OPEN;       /* what really happened */
bool business[ATTEMPTS + 2] = false;    /* its business rows committed */
bool reclaimed[ATTEMPTS + 2] = false;   /* its chapter was truncated */
bool inserting[ATTEMPTS + 2] = false;   /* an open transaction holds the completion's key */
bool locked[ATTEMPTS + 2] = false;      /* the attempt's advisory lock */

#define key_committed(k) (closed[k] != OPEN && !reclaimed[k])

#if ATTEMPTS == 2
#define job_ended     (closed[1] == COMPLETED || closed[2] != OPEN)
#define rows_agree    (business[1] == (closed[1] == COMPLETED) && \
                       business[2] == (closed[2] == COMPLETED))
#define one_committed (business[1] + business[2] <= 1)
#else
#define job_ended     (closed[1] == COMPLETED || closed[2] == COMPLETED || closed[3] != OPEN)
#define rows_agree    (business[1] == (closed[1] == COMPLETED) && \
                       business[2] == (closed[2] == COMPLETED) && \
                       business[3] == (closed[3] == COMPLETED))
#define one_committed (business[1] + business[2] + business[3] <= 1)
#endif

ltl together { [] (rows_agree && one_committed) }
ltl ends     { <> job_ended }

#ifdef NO_ATTEMPT_LOCK
#define lock_free(k)     true
#define set_lock(k, on)  skip
#else
#define lock_free(k)     (!locked[k])
#define set_lock(k, on)  locked[k] = on
#endif

#ifdef TAIL_UNCHECKED
#define chapter_gone(k)  false
#else
#define chapter_gone(k)  reclaimed[k]
#endif

#ifdef FINITE_ROLLBACKS          /* what "ends" assumes; costs states, so not for safety */
#define may_roll_back (!rolled_back)
#define remember_roll_back rolled_back = true
#else
#define may_roll_back true
#define remember_roll_back skip
#endif

inline roll_back(k) {
  inserting[k] = false;
  remember_roll_back
}

inline close(k, outcome) {
  assert(closed[k] == OPEN && !reclaimed[k]);
  closed[k] = outcome;
  inserting[k] = false
}

inline let_next_run(k) {
  ready[(k) + 1] = ((k) < ATTEMPTS || ready[(k) + 1])
}

/* The server's side of the caller's transaction. It lives on when its client
 * is gone, and may still commit what the client sent. */
proctype Session(byte k) {
  bool wrote = false;

  if
  :: wrote = true                       /* business rows, not committed */
  :: goto over                          /* rolled back before complete_job */
  fi;
#ifdef TWO_TRANSACTIONS
  d_step { business[k] = true; wrote = false };
#endif
  d_step { lock_free(k) -> set_lock(k, true) };
  if
  :: d_step { !key_committed(k) && !inserting[k] -> inserting[k] = true }
  :: key_committed(k) ->
#ifdef RETURNS_FALSE
     d_step { business[k] = (business[k] || wrote) };
#endif
     goto unlock                        /* OC001 aborts the transaction */
  fi;
  if
  :: d_step { chapter_gone(k) -> inserting[k] = false }   /* 40001 aborts it */
  :: !chapter_gone(k) ->
     if
     :: d_step { true ->                /* COMMIT */
          close(k, COMPLETED);
          business[k] = (business[k] || wrote) }
     :: inserting[k] = false            /* ROLLBACK, or the connection or server broke */
     fi
  fi;
unlock:
  set_lock(k, false);
over:
  skip
}

/* The worker: runs the handler, then asks before it lets go. */
proctype Executor(byte k) {
  byte begun, evidence;
  bool in_flight, gone, rolled_back;

  d_step { ready[k] -> claimed[k] = true };
  do
  :: begun < SESSIONS -> begun++; run Session(k)
  :: break                              /* returned, raised, cancelled, timed out */
  od;
  begun = 0;

  do
  :: goto let_go                        /* killed, or out of budget: rescue decides */

#ifdef UNKNOWN_IS_FAILURE
  :: let_next_run(k); goto let_go       /* no answer, so it must have failed */
#endif
#ifdef UNKNOWN_IS_COMPLETION
  :: assert(closed[k] == COMPLETED); goto let_go
#endif

  /* attempt_status: the holder, then the completion, then the tail */
  :: in_flight = locked[k];
     evidence = (reclaimed[k] -> OPEN : closed[k]);
     gone = reclaimed[k];
     if
     :: gone -> goto let_go             /* unknown: touch nothing */
     :: !gone && evidence == COMPLETED -> assert(closed[k] == COMPLETED); goto let_go
     :: !gone && evidence != COMPLETED && evidence != OPEN -> goto let_go   /* stale */
     :: !gone && evidence == OPEN && in_flight   /* ask again */
     :: !gone && evidence == OPEN && !in_flight ->
        /* finish_jobs */
        if
        :: d_step { lock_free(k) -> set_lock(k, true) };
           if
           :: d_step { !key_committed(k) && !inserting[k] -> inserting[k] = true };
              if
              :: d_step { chapter_gone(k) -> inserting[k] = false }
              :: !chapter_gone(k) ->
                 if
                 :: d_step { true -> close(k, RETRIED); let_next_run(k) }
                 :: d_step { may_roll_back -> roll_back(k) }
                 fi
              fi
           :: key_committed(k)          /* lost the race: ask again */
           fi;
           set_lock(k, false)
#ifndef NO_ATTEMPT_LOCK
        :: locked[k]                    /* busy: ask again */
#endif
        fi
     fi;
     d_step { in_flight = false; evidence = OPEN; gone = false }
  od;
let_go:
  skip
}

proctype Rescuer() {
  byte k;
  bool rolled_back;

end:
  do
  :: atomic {                           /* the scan: a snapshot that may be old by now */
       if
       :: claimed[1] && closed[1] == OPEN -> k = 1
       :: claimed[2] && closed[2] == OPEN -> k = 2
#if ATTEMPTS == 3
       :: claimed[3] && closed[3] == OPEN -> k = 3
#endif
       fi
     }
     if
     :: d_step { lock_free(k) -> set_lock(k, true) };
        if
#ifdef RESCUE_WITHOUT_KEY
        :: true ->
           if
           :: d_step { closed[k] == OPEN -> closed[k] = RESCUED; let_next_run(k) }
           :: d_step { closed[k] != OPEN -> let_next_run(k) }   /* a second row for the attempt */
           fi
#else
        :: d_step { !key_committed(k) && !inserting[k] -> inserting[k] = true };
           if
           :: d_step { chapter_gone(k) -> inserting[k] = false }
           :: !chapter_gone(k) ->
              if
              :: d_step { true -> close(k, RESCUED); let_next_run(k) }
              :: d_step { may_roll_back -> roll_back(k) }
              fi
           fi
        :: key_committed(k) ->
#ifdef RESCUE_IGNORES_CONFLICT
           let_next_run(k)
#else
           skip                         /* closed meanwhile */
#endif
#endif
        fi;
        set_lock(k, false)
#ifndef NO_ATTEMPT_LOCK
     :: locked[k]                       /* a commit may be in flight: next time */
#endif
     fi;
     k = 0
  od
}

/* Truncation needs the chapter closed and nobody inserting into it. */
#define reclaimable(k) (closed[k] != OPEN && !reclaimed[k] && !inserting[k])

proctype Reclaimer() {
end:
  do
  :: d_step { reclaimable(1) -> reclaimed[1] = true }
  :: d_step { reclaimable(2) -> reclaimed[2] = true }
#if ATTEMPTS == 3
  :: d_step { reclaimable(3) -> reclaimed[3] = true }
#endif
  od
}

init {
  byte i;
  atomic {
    ready[1] = true;
    i = 1;
    do
    :: i <= ATTEMPTS -> run Executor(i); i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < RESCUERS -> run Rescuer(); i++
    :: else -> break
    od;
    i = 0;
    run Reclaimer()
  }
}
