// The recorded effect of an event on links and nodes, independent of its kind.
import type { Effect } from '../go/record'

/** touched returns the links or nodes of an event. For streams it returns the nodes at both ends. */
export function touched(e: { effect?: Effect; targets?: string[] }): string[] {
  const targets = e.targets ?? []
  return e.effect?.on === 'streams' ? targets.flatMap((t) => t.split('>')) : targets
}
