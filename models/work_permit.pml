/* Effect permits of Work: when the provider may be called, and what may be said afterwards.
 *
 * Two workers claim one Work, get a permit, are admitted, call the provider and
 * report. A worker may stop for ever between any two of its steps, and it may go
 * on after its lease has ended. Time is a step that ends a lease whenever it
 * likes; a claim then recovers the Work by its safety class. An operator cancels
 * once. Each operation is one transaction under the Work's row lock, so it is
 * one atomic step here; what is not atomic is the way from the admission to the
 * provider and back.
 *
 * Holds:
 *   under an unsafe class the provider is called a second time only if the first
 *   call is known to have had no effect;
 *   each permit leads to one call at most;
 *   no state says failed or canceled before effect while a call may have had an
 *   effect, or did have one;
 *   a success is one that the provider gave.
 *
 * Broken variants: ADMIT_AGAIN, RECOVERY_IS_PROOF, CLAIM_IS_AUTHORITY, NO_FENCE,
 * CANCEL_IS_PROOF, FAILURE_IS_FINAL, UNSAFE_RETRIES.
 */

#ifndef SAFE
#define SAFE false              /* the class: may an unknown effect be repeated? */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 3
#endif
#define WORKERS 2

mtype = { pending, leased, permitted, cancel_pending, suspended, succeeded, failed, canceled };
mtype = { none, granted, known, no_effect, ambiguous };

mtype state = pending;
byte attempt = 0;               /* is the lease generation too: the fence */
bool live = false;              /* the lease has not ended */
bool cancelled = false;
mtype permit[ATTEMPTS + 1] = none;
bool admitted[ATTEMPTS + 1];
/* What really happened at the provider, which the store cannot see. */
byte calls[ATTEMPTS + 1];
bool applied[ATTEMPTS + 1];
bool proved[ATTEMPTS + 1];      /* the executor itself knows that its call changed nothing */

#define terminal (state == succeeded || state == failed || state == canceled)

#ifdef NO_FENCE
#define holds(a) (!terminal && state != pending)
#else
#define holds(a) (attempt == a && live && (state == leased || state == permitted || state == cancel_pending))
#endif

/* Whether some permit may have had an effect. */
inline look() {
  unresolved = false;
  i = 1;
  do
  :: i > ATTEMPTS -> break
  :: else ->
     unresolved = unresolved || (admitted[i] && (permit[i] == granted || permit[i] == ambiguous));
     i++
  od
}

#ifdef UNSAFE_RETRIES
#define may_repeat true
#else
#define may_repeat SAFE
#endif

/* decide_end: what the attempt's end, or a cancellation, leads to. */
inline decide(again, fails) {
  look();
  live = false;
  if
#ifdef FAILURE_IS_FINAL
  :: fails -> state = failed
#endif
  :: else ->
     if
     :: unresolved && again && !cancelled && may_repeat && attempt < ATTEMPTS -> state = pending
     :: unresolved && !(again && !cancelled && may_repeat && attempt < ATTEMPTS) -> state = suspended
     :: !unresolved && cancelled -> state = canceled
     :: !unresolved && !cancelled && (fails || attempt == ATTEMPTS) -> state = failed
     :: !unresolved && !cancelled && !fails && attempt < ATTEMPTS -> state = pending
     fi
  fi
}

/* close_permit without an outcome of its own. */
inline close(a) {
  if
  :: permit[a] == granted ->
#ifdef RECOVERY_IS_PROOF
     permit[a] = no_effect
#else
     permit[a] = (admitted[a] -> ambiguous : no_effect)
#endif
  :: else
  fi
}

/* No state denies an effect that there may be. */
inline truthful() {
  i = 1;
  do
  :: i > ATTEMPTS -> break
  :: else ->
     assert(!((state == failed || state == canceled) && applied[i]));
     assert(!((state == failed || state == canceled) && calls[i] > 0 && !proved[i]));
     assert(!(permit[i] == no_effect && applied[i]));
     i++
  od
}

inline call_provider(a) {
  d_step {
    calls[a]++;
    assert(calls[a] == 1);      /* one call for a permit */
    i = 1;
    do
    :: i > ATTEMPTS -> break
    :: else ->                  /* an earlier one is known to have changed nothing, or may be repeated */
       assert(i == a || SAFE || calls[i] == 0 || proved[i]);
       i++
    od
  }
}

active [WORKERS] proctype Worker() {
  byte mine, i;
  bool unresolved;
again:
  mine = 0;
  atomic {
    if
    :: state == pending && attempt < ATTEMPTS && !live ->       /* claim_work */
       attempt++;
       mine = attempt;
       state = leased;
       live = true
    :: (state == leased || state == permitted || state == cancel_pending) && !live ->     /* recover_work */
       close(attempt);
       decide(true, false);
       truthful();
       i = 0;
       unresolved = false;
       goto again
    :: terminal || state == suspended -> goto done
    fi
  }
#ifdef CLAIM_IS_AUTHORITY
  goto provider;
#endif
  atomic {                                                      /* acquire_permit */
    if
    :: holds(mine) && state == leased -> state = permitted; permit[mine] = granted
    :: !(holds(mine) && state == leased) -> goto again
    fi
  }
admit:
  atomic {                                                      /* admit_invocation */
    if
#ifdef ADMIT_AGAIN
    :: holds(mine) && permit[mine] == granted -> admitted[mine] = true
#else
    :: holds(mine) && state == permitted && permit[mine] == granted && !admitted[mine] -> admitted[mine] = true
#endif
    :: else -> goto again
    fi
  }
  if
  :: skip
  :: goto admit                 /* the answer was lost, and the request is told again */
  :: goto done                  /* the process is gone */
  fi;
provider:
  call_provider(mine);
  if
  :: applied[mine] = true
  :: proved[mine] = true        /* RetryBeforeEffect: nothing was changed, and the executor knows */
  :: skip                       /* neither, and nobody knows */
  fi;
  if
  :: skip
  :: goto admit                 /* the same attempt is run a second time */
  :: goto done
  fi;
  atomic {                                                      /* complete_work */
    if
    :: !holds(mine) -> skip                                     /* quarantined */
    :: else ->
       if
       :: applied[mine] && admitted[mine] -> permit[mine] = known; live = false;
          state = succeeded
       :: proved[mine] -> permit[mine] = no_effect; decide(true, false)
       :: !proved[mine] -> close(mine); decide(true, false)     /* exception */
       :: !proved[mine] -> close(mine); decide(false, false)    /* ambiguous */
       :: !proved[mine] -> close(mine); decide(false, true)     /* failed_terminal */
       fi;
       truthful();
       assert(state != succeeded || applied[mine])
    fi;
    i = 0;
    unresolved = false
  }
  goto again;
done:
  skip
}

/* A lease ends at any moment; nobody has to notice. */
active proctype Time() {
end:
  do
  :: atomic { live -> live = false }
  od
}

active proctype Operator() {
  byte i;
  bool unresolved;
  atomic {                                                      /* cancel_work */
    if
    :: terminal -> skip
    :: else ->
       cancelled = true;
       if
#ifdef CANCEL_IS_PROOF
       :: true -> close(attempt); live = false; state = canceled
#else
       :: state == permitted && live && admitted[attempt] -> state = cancel_pending
       :: state == suspended -> skip
       :: !(state == permitted && live && admitted[attempt]) && state != suspended ->
          close(attempt);
          decide(false, false)
#endif
       fi;
       truthful()
    fi
  }
}
