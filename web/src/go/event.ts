// Made by "make docs" from the types of internal/event.
import type { Scope } from './record'

/** Amount is a field of the form. */
export interface Amount {
  key: string
  label: string
  /** value is what stands there first. */
  value: string
  /** number says that it is sent as one. */
  number?: boolean
}

/**
 * Offer is one way in which the dashboard offers to fire a kind of event at what the reader
 * points out on the map. What is sent is {KIND: {Targets: names, Amount.Key: amount}}.
 */
export interface Offer {
  id: string
  title: string
  /** kind is the name of its kind. */
  kind: string
  /** on is what is pointed out, Targets the key that takes its names. */
  on: Scope
  targets: string
  /** amount is what the reader may write, nil for nothing. */
  amount?: Amount
}
