// Made by "make docs" from the types of internal/experiment.

/** Mistake is a strict.Problem in JSON. */
export interface Mistake {
  file?: string
  line?: number
  column?: number
  path?: string
  message: string
  hint?: string
}
