export {
  type Capability,
  type CapabilityHooks,
  type CapabilityState,
  checkDistinct,
  defineCapability,
  type HookCall,
  type HookContext,
  type HookOutcome,
} from './capability.ts'
export { RunCapabilities } from './run.ts'
export { CapabilityStates } from './states.ts'
