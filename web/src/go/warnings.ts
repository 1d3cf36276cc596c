// Made by "make docs" from the types of internal/evidence/warnings.

/** Kind is the kind of a problem. */
export type Kind = (typeof everyKind)[number]
export const everyKind = ['assertion', 'audit', 'failed', 'trust'] as const

/** Warning is one kind of problem with some trials. */
export interface Warning {
  kind: Kind
  /** trials are the IDs of the affected trials. */
  trials: number[]
  text: string
}
