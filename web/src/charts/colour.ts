// The colours of nodes: the same in every drawing of a page, live and in the report.
import type { Theme } from '../ui/theme'

/** NodeColour gives a node its colour; what is no node, as the machine, is grey. */
export type NodeColour = (name: string, t: Theme) => string

/** nodeColours goes by the places of nodes in their cloud, so that a node keeps its colour whatever else is shown. */
export function nodeColours(names: string[]): NodeColour {
  const place = new Map(names.map((n, i) => [n, i]))
  return (name, t) => {
    const i = place.get(name)
    return i === undefined ? t.muted : t.series[i % t.series.length]!
  }
}
