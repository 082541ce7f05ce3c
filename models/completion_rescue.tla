------------------------- MODULE completion_rescue -------------------------
(***************************************************************************)
(* Completion against rescue: who closes an attempt, and what may be       *)
(* believed.  The same protocol as completion_rescue.pml, written for      *)
(* readers of TLA+; continuous integration checks the Promela text.        *)
(*                                                                         *)
(* A handler's own transaction (a session) writes business rows and calls  *)
(* complete_job.  Its client may lose the answer; the session may go on    *)
(* without it.  Rescue closes attempts that seem abandoned and lets the    *)
(* next one run.  The executor asks the database what happened and closes  *)
(* the attempt as retried only if it finds it open.                        *)
(*                                                                         *)
(* To check with TLC: MaxAttempts = 2, NoOne a model value, both switches  *)
(* FALSE; invariants TypeOK, Together, Once, Believed; properties          *)
(* ClosedForEver and, with Spec, Ends.  Either switch TRUE must give a     *)
(* counterexample.                                                         *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  MaxAttempts,        \* of the one job
  NoOne,              \* not an actor
  ReturnsFalse,       \* broken: complete_job reports a lost race instead of raising
  RescueWithoutKey    \* broken: rescue neither meets the key nor looks again

Attempts == 1 .. MaxAttempts
Outcomes == {"open", "completed", "retried", "rescued"}
Session(k)  == <<"session", k>>
Executor(k) == <<"executor", k>>
Rescuer     == <<"rescuer", 0>>
Actors == {Session(k) : k \in Attempts} \cup {Executor(k) : k \in Attempts} \cup {Rescuer}

VARIABLES
  ready,      \* attempts whose ready row committed
  claimed,    \* attempts that a worker took
  closed,     \* the committed outcome of each attempt, whether or not it was truncated
  business,   \* attempts whose business rows committed
  reclaimed,  \* attempts whose chapter was truncated
  key,        \* the open transaction that holds the completion's key, by attempt
  lock,       \* the holder of the advisory lock, by attempt
  step,       \* where each actor stands
  target,     \* the attempt that rescue looks at
  answer,     \* what attempt_status told the executor so far
  belief      \* what the executor let go with

vars == <<ready, claimed, closed, business, reclaimed, key, lock, step, target, answer, belief>>

TypeOK ==
  /\ ready \subseteq Attempts
  /\ claimed \subseteq ready
  /\ closed \in [Attempts -> Outcomes]
  /\ business \subseteq Attempts
  /\ reclaimed \subseteq Attempts
  /\ key \in [Attempts -> Actors \cup {NoOne}]
  /\ lock \in [Attempts -> Actors \cup {NoOne}]
  /\ step \in [Actors -> {"idle", "wrote", "locked", "inserted", "checked", "unlock",
                          "run", "ask", "look", "judge", "over"}]
  /\ target \in Attempts
  /\ answer \in [Attempts -> [held : BOOLEAN, outcome : Outcomes]]
  /\ belief \in [Attempts -> {"none", "completed", "retried", "stale", "unknown"}]

Init ==
  /\ ready = {1}
  /\ claimed = {}
  /\ closed = [k \in Attempts |-> "open"]
  /\ business = {}
  /\ reclaimed = {}
  /\ key = [k \in Attempts |-> NoOne]
  /\ lock = [k \in Attempts |-> NoOne]
  /\ step = [a \in Actors |-> "idle"]
  /\ target = 1
  /\ answer = [k \in Attempts |-> [held |-> FALSE, outcome |-> "open"]]
  /\ belief = [k \in Attempts |-> "none"]

(***************************************************************************)
(* Pieces that every closer is made of                                     *)
(***************************************************************************)
KeyCommitted(k) == closed[k] # "open" /\ k \notin reclaimed
KeyFree(k)      == ~KeyCommitted(k) /\ key[k] = NoOne

Go(a, from, to) == step[a] = from /\ step' = [step EXCEPT ![a] = to]

Lock(a, k) ==
  /\ lock[k] = NoOne
  /\ lock' = [lock EXCEPT ![k] = a]
  /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, target, answer, belief>>

Unlock(a, k) ==
  /\ lock' = [lock EXCEPT ![k] = NoOne]
  /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, target, answer, belief>>

\* Waits while another open transaction holds the key.
Insert(a, k) ==
  /\ KeyFree(k)
  /\ key' = [key EXCEPT ![k] = a]
  /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, lock, target, answer, belief>>

\* The tail is read after the insert, whose lock excludes truncation from then on.
CheckTail(k) ==
  /\ k \notin reclaimed
  /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, target, answer, belief>>

RollBack(k) ==
  /\ key' = [key EXCEPT ![k] = NoOne]
  /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, lock, target, answer, belief>>

\* A commit makes all its rows visible at once; the advisory lock goes a moment later.
Commit(k, outcome, rows, next) ==
  /\ closed' = [closed EXCEPT ![k] = outcome]
  /\ business' = business \cup rows
  /\ ready' = ready \cup (next \cap Attempts)
  /\ key' = [key EXCEPT ![k] = NoOne]
  /\ UNCHANGED <<claimed, reclaimed, lock, target, answer, belief>>

(***************************************************************************)
(* The session: the caller's transaction, as the server runs it            *)
(***************************************************************************)
SessionStep(k) ==
  LET a == Session(k) IN
  \/ /\ k \in claimed
     /\ Go(a, "idle", "wrote")
     /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, target, answer, belief>>
  \/ /\ Go(a, "wrote", "over")              \* rolled back before complete_job
     /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, target, answer, belief>>
  \/ Go(a, "wrote", "locked") /\ Lock(a, k)
  \/ Go(a, "locked", "inserted") /\ Insert(a, k)
  \/ /\ KeyCommitted(k)                     \* OC001 aborts the transaction
     /\ Go(a, "locked", "unlock")
     /\ business' = IF ReturnsFalse THEN business \cup {k} ELSE business
     /\ UNCHANGED <<ready, claimed, closed, reclaimed, key, lock, target, answer, belief>>
  \/ Go(a, "inserted", "checked") /\ CheckTail(k)
  \/ Go(a, "inserted", "unlock") /\ k \in reclaimed /\ RollBack(k)
  \/ Go(a, "checked", "unlock") /\ Commit(k, "completed", {k}, {})
  \/ Go(a, "checked", "unlock") /\ RollBack(k)
  \/ Go(a, "unlock", "over") /\ Unlock(a, k)

(***************************************************************************)
(* The executor: runs the handler, then asks before it lets go             *)
(***************************************************************************)
LetGo(k, with) ==
  /\ belief' = [belief EXCEPT ![k] = with]
  /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, target, answer>>

ExecutorStep(k) ==
  LET a == Executor(k) IN
  \/ /\ k \in ready
     /\ Go(a, "idle", "run")
     /\ claimed' = claimed \cup {k}
     /\ UNCHANGED <<ready, closed, business, reclaimed, key, lock, target, answer, belief>>
  \* The handler exits, in whatever way and whatever the session does.
  \/ /\ Go(a, "run", "ask")
     /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, target, answer, belief>>
  \* Killed, or the database stays out of reach for longer than the budget.
  \/ Go(a, "ask", "over") /\ LetGo(k, "unknown")
  \* attempt_status: the holder first, then the completion, then the tail.
  \/ /\ Go(a, "ask", "look")
     /\ answer' = [answer EXCEPT ![k].held = lock[k] # NoOne]
     /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, target, belief>>
  \/ /\ Go(a, "look", "judge")
     /\ answer' = [answer EXCEPT ![k].outcome = IF k \in reclaimed THEN "open" ELSE closed[k]]
     /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, target, belief>>
  \/ k \in reclaimed /\ Go(a, "judge", "over") /\ LetGo(k, "unknown")
  \/ /\ k \notin reclaimed
     /\ \/ answer[k].outcome = "completed" /\ Go(a, "judge", "over") /\ LetGo(k, "completed")
        \/ answer[k].outcome = "retried" /\ Go(a, "judge", "over") /\ LetGo(k, "retried")
        \/ answer[k].outcome = "rescued" /\ Go(a, "judge", "over") /\ LetGo(k, "stale")
        \/ /\ answer[k].outcome = "open" /\ answer[k].held
           /\ Go(a, "judge", "ask")         \* a commit may be in flight
           /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, target, answer, belief>>
        \/ /\ answer[k].outcome = "open" /\ ~answer[k].held
           /\ Go(a, "judge", "locked") /\ Lock(a, k)
        \/ /\ answer[k].outcome = "open" /\ ~answer[k].held /\ lock[k] # NoOne
           /\ Go(a, "judge", "ask")         \* busy
           /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, target, answer, belief>>
  \* finish_jobs
  \/ Go(a, "locked", "inserted") /\ Insert(a, k)
  \/ /\ KeyCommitted(k)
     /\ Go(a, "locked", "unlock")
     /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, target, answer, belief>>
  \/ Go(a, "inserted", "checked") /\ CheckTail(k)
  \/ Go(a, "inserted", "unlock") /\ k \in reclaimed /\ RollBack(k)
  \/ Go(a, "checked", "unlock") /\ Commit(k, "retried", {}, {k + 1})
  \/ Go(a, "checked", "unlock") /\ RollBack(k)
  \/ Go(a, "unlock", "ask") /\ Unlock(a, k)  \* and ask again: the answer may have been lost

(***************************************************************************)
(* Rescue                                                                  *)
(***************************************************************************)
RescueStep ==
  LET a == Rescuer
      k == target IN
  \/ /\ Go(a, "idle", "look")               \* the scan: old by the time it is used
     /\ \E c \in claimed : closed[c] = "open" /\ target' = c
     /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, answer, belief>>
  \/ Go(a, "look", "locked") /\ Lock(a, k)
  \/ /\ lock[k] # NoOne /\ Go(a, "look", "idle")
     /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, target, answer, belief>>
  \/ ~RescueWithoutKey /\ Go(a, "locked", "inserted") /\ Insert(a, k)
  \/ /\ ~RescueWithoutKey /\ KeyCommitted(k) /\ Go(a, "locked", "unlock")
     /\ UNCHANGED <<ready, claimed, closed, business, reclaimed, key, lock, target, answer, belief>>
  \/ RescueWithoutKey /\ Go(a, "locked", "unlock") /\ Commit(k, "rescued", {}, {k + 1})
  \/ Go(a, "inserted", "checked") /\ CheckTail(k)
  \/ Go(a, "inserted", "unlock") /\ k \in reclaimed /\ RollBack(k)
  \/ Go(a, "checked", "unlock") /\ Commit(k, "rescued", {}, {k + 1})
  \/ Go(a, "checked", "unlock") /\ RollBack(k)
  \/ Go(a, "unlock", "idle") /\ Unlock(a, k)

\* Truncation needs the chapter closed and nobody inserting into it.
Reclaim(k) ==
  /\ closed[k] # "open" /\ k \notin reclaimed /\ key[k] = NoOne
  /\ reclaimed' = reclaimed \cup {k}
  /\ UNCHANGED <<ready, claimed, closed, business, key, lock, step, target, answer, belief>>

Next ==
  \/ \E k \in Attempts : SessionStep(k) \/ ExecutorStep(k) \/ Reclaim(k)
  \/ RescueStep

\* "Ends" needs closures that commit in the end: strong fairness of the commits.
RescueCommits      == RescueStep /\ closed' # closed
ExecutorCommits(k) == ExecutorStep(k) /\ closed' # closed
Fairness ==
  /\ \A k \in Attempts : WF_vars(SessionStep(k)) /\ WF_vars(ExecutorStep(k))
  /\ WF_vars(RescueStep)
  /\ SF_vars(RescueCommits)
  /\ \A k \in Attempts : SF_vars(ExecutorCommits(k))

Spec == Init /\ [][Next]_vars /\ Fairness

(***************************************************************************)
(* What holds                                                              *)
(***************************************************************************)
Together == \A k \in Attempts : k \in business <=> closed[k] = "completed"
Once     == Cardinality(business) <= 1
Believed == \A k \in Attempts :
              /\ belief[k] = "completed" => closed[k] = "completed"
              /\ belief[k] = "retried"   => closed[k] = "retried"
              /\ belief[k] = "stale"     => closed[k] \notin {"open", "completed"}
ClosedForEver == [][\A k \in Attempts : closed[k] # "open" => closed'[k] = closed[k]]_vars
JobEnded == \/ \E k \in Attempts : closed[k] = "completed"
            \/ closed[MaxAttempts] # "open"
Ends     == <>JobEnded
=============================================================================
