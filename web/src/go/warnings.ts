// Made by "make docs" from the types of internal/evidence/warnings.

/** Kind is what is wrong, the gravest first. */
export type Kind = (typeof everyKind)[number]
export const everyKind = ['assertion', 'audit', 'failed', 'trust'] as const

/** Warning is one kind of trouble, of however many trials. */
export interface Warning {
  kind: Kind
  /** trials are the IDs of those that it is about. */
  trials: number[]
  text: string
}
