// Events behind curves: bands for their duration, lines for their start.
import type { Band } from '../go/series'
import { clock } from '../format/format'
import type { Theme } from '../ui/theme'

/** inForce returns true if a band covers time t. */
export function inForce(b: Band, t: number): boolean {
  return b.from <= t && (b.to === undefined || t < b.to) && b.to !== b.from
}

/** bandText describes an event in a line: "lost: lab-1 killed, 5 s to 12.5 s". */
export function bandText(b: Band): string {
  const what = (b.name === b.text || !b.text ? b.name : `${b.name}: ${b.text}`) + (b.reverts ? ', reverted' : '')
  const till = b.to === b.from ? '' : b.to === undefined ? ' to the end' : ` to ${clock(b.to)}`
  const failure = b.state === 'failed' ? `, failed: ${(b.error ?? '').split('\n')[0]}` : ''
  return `${what}, ${b.state === 'skipped' ? 'skipped' : clock(b.from) + till}${failure}`
}

const mostNamed = 12

/** united merges overlapping bands, so that an overlap is not darker. */
export function united(bands: Band[], last: number): [number, number][] {
  const out: [number, number][] = []
  for (const b of [...bands].sort((x, y) => x.from - y.from)) {
    const to = Math.max(b.from, Math.min(b.to ?? last, last))
    const before = out.at(-1)
    if (before && b.from <= before[1]) before[1] = Math.max(before[1], to)
    else out.push([b.from, to])
  }
  return out
}

/** stolen returns true for a band of CPU taken from the driver, false for an event. */
export const stolen = (b: Band): boolean => b.kind === 'stolen'

/** markBands is the part of the option of a series that shows events and the warm-up until last. */
export function markBands(bands: Band[], first: number, last: number, t: Theme, named: boolean): Record<string, unknown> {
  const reached = bands.filter((b) => b.to !== b.from && b.state !== 'skipped' && b.from <= last)
  const shown = reached.filter((b) => !stolen(b))
  const areas: unknown[] = shown.map((b, i) => [
    {
      xAxis: b.from,
      itemStyle: { color: 'transparent' },
      label: {
        show: named && shown.length <= mostNamed, formatter: b.name.slice(0, 24).replaceAll('{', '('), position: 'insideTopLeft',
        color: t.muted, fontSize: 11,
        distance: 3 + 13 * (i % 3), rich: {},
      },
    },
    { xAxis: Math.max(b.from, Math.min(b.to ?? last, last)) },
  ])
  areas.unshift(...united(shown, last).map(([from, to]) => [{ xAxis: from, itemStyle: { color: t.band }, label: { show: false } },
    { xAxis: to }]))
  const taken = united(reached.filter(stolen), last)
  const widest = taken.reduce((w, [from, to], i) => (to - from > taken[w]![1] - taken[w]![0] ? i : w), 0)
  areas.unshift(...taken.map(([from, to], i) => [
    {
      xAxis: from, itemStyle: { color: t.stolen },
      label: { show: named && i === widest, formatter: 'grey: CPU taken from the driver', position: 'insideBottom', color: t.muted,
        fontSize: 11 },
    },
    { xAxis: to },
  ]))
  if (first < 0) {
    areas.push([
      { xAxis: first, itemStyle: { color: t.faint },
        label: { show: named, formatter: 'warm-up', position: 'insideBottomLeft', color: t.muted, fontSize: 11 } },
      { xAxis: 0 },
    ])
  }
  return {
    markArea: { silent: true, data: areas },
    markLine: {
      silent: true, symbol: 'none', label: { show: false }, lineStyle: { color: t.bandLine, type: 'dashed', width: 1 },
      data: shown.slice(0, 200).map((b) => ({ xAxis: b.from })),
    },
  }
}
