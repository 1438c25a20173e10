import * as effects from './laws-effects.ts'
import * as history from './laws-history.ts'
import * as runs from './laws-runs.ts'
import * as waits from './laws-waits.ts'
import type { Law } from './story.ts'

/** What holds in every world, by name. */
export const LAWS: Readonly<Record<string, Law>> = {
  'each call in the history has one return before the model speaks again': history.historyIsLegal,
  'every prefix of the log folds, and gives the state its writer had': history.everyPrefixFolds,
  'a commit is accepted whole or is void': history.partsAreVoid,
  'a decision depends on state and command only, and changes neither': history.decisionsArePure,
  'a call not marked retryable runs once per key unless the run says always': effects.effectsHappenOnce,
  'an effect begins when its dispatch is in the log, under a key of its own': effects.effectsFollowTheirEvent,
  'no effect of an attempt begins after another one took over': effects.takeoversEndEffects,
  'in mode never no attempt takes up what another one was told': effects.neverTakesNothingUp,
  'an attempt that was taken over writes nothing any more': effects.zombiesAreNotHeard,
  'an approval counts for the attempt that claimed it': effects.approvalsCountForTheirAttempt,
  'each result has one final verdict, equal on redelivery': waits.verdictsAreFinal,
  'a wait that exists is unknown to nobody who asked the barrier': waits.onlyTheBarrierSaysUnknown,
  'a wait expires once, in its time, and not when it was answered before': waits.timeIsOverOnce,
  'a call whose wait has expired has failed': waits.expiryIsRead,
  'a claim stands in one commit with the run that goes on': waits.claimsBeginARun,
  'no wait is unarmed, none outlives its invocation': waits.waitsAreArmedAndClosed,
  'every run that was asked for ends once the world is quiet, and who waits for it is told': waits.everyRunEnds,
  'a command asks for one run': runs.commandsAskOnce,
  'runs begin in the order they were asked for': runs.runsBeginInTheirTurn,
  'an input is read by the model once': runs.inputsAreReadOnce,
  'an answer that was claimed is read by the model': runs.answersAreRead,
  'a run that was told to stop neither completes nor suspends': runs.cancelsAreObeyed,
  'another system prompt changes nothing else of the history': runs.revisionsKeepWhatWasSaid,
  'nothing a process does for a thread fails with an error': waits.nothingDies,
}
