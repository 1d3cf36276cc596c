// What an event does to links and nodes, as its record tells it. No kind is known here.
import type { Effect } from '../go/record'

/** touched are the links or nodes that an event happens to: of streams the nodes at both ends. */
export function touched(e: { effect?: Effect; targets?: string[] }): string[] {
  const targets = e.targets ?? []
  return e.effect?.on === 'streams' ? targets.flatMap((t) => t.split('>')) : targets
}
