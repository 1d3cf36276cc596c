// The colours of nodes: the same in every drawing of a page, live and in the report.
import type { Theme } from '../ui/theme'

/** NodeColour returns the colour of a node. Other names, such as the machine, are grey. */
export type NodeColour = (name: string, t: Theme) => string

/** nodeColours assigns colours by the order of nodes in the cloud, so that every chart uses the same ones. */
export function nodeColours(names: string[]): NodeColour {
  const place = new Map(names.map((n, i) => [n, i]))
  return (name, t) => {
    const i = place.get(name)
    return i === undefined ? t.muted : t.series[i % t.series.length]!
  }
}
