// Made by "make docs" from the types of internal/event.
import type { Scope } from './record'

/** Amount is an input field of an Offer. */
export interface Amount {
  key: string
  label: string
  /** value is the default. */
  value: string
  /** number means that the value is sent as a number. */
  number?: boolean
}

/**
 * Offer is a form of the dashboard that fires a kind of event at selected nodes or links. The
 * dashboard sends {KIND: {Targets: names, Amount.Key: amount}}.
 */
export interface Offer {
  id: string
  title: string
  /** kind is the name of its kind. */
  kind: string
  /** on is what the user selects, Targets the key for the selected names. */
  on: Scope
  targets: string
  /** amount is an optional input field. */
  amount?: Amount
}
