// Whether a run can be believed: what is wrong with its trials, the gravest first.
import type { Warning, Kind } from '../go/warnings'
import type { State } from '../go/live'
import type { Entry } from '../go/serve'
import { plural } from '../format/format'
import { h } from '../ui/dom'
import { badge } from './pages'

/** ended is how many of a run's trials have. */
export const ended = (e: Entry): number => Object.values(e.trials).reduce((a, b) => a + b, 0)

const words: Record<Kind, (n: number) => string> = {
  assertion: () => 'assertion failed', audit: () => 'audit found something', failed: (n) => `${n} failed`, trust: (n) => `${n} suspect`,
}

/** weight orders runs by what is wrong with them: the gravest has the most. */
export function weight(e: Entry): number {
  const kinds = Object.keys(words)
  const worst = e.doubts?.length ? kinds.length - kinds.indexOf(e.doubts[0]!.kind) : 0
  return 10 * (e.state === 'unreadable' ? 9 : worst) + (e.state === 'interrupted' ? 2 : e.state === 'running' ? 1 : 0)
}

/** verdicts are a run's badges: how far it is, unless it is over, and each kind of doubt. */
export function verdicts(e: Entry): HTMLElement[] {
  const doubts = (e.doubts ?? []).map((d) => badge(words[d.kind](d.trials.length), d.kind === 'trust' ? 'warn' : 'bad'))
  switch (e.state) {
    case 'unreadable': return [badge('unreadable', 'bad')]
    case 'running': return [...doubts, badge('running', doubts.length ? '' : 'good')]
    case 'interrupted': return [...doubts, badge('interrupted', 'warn')]
  }
  if (doubts.length) return doubts
  return [e.planned > 0 && e.trials['valid'] === e.planned ? badge('all valid', 'good') : badge(ended(e) ? 'finished' : 'nothing measured')]
}

/** warningList says what is wrong in sentences; null where nothing is. */
export function warningList(list: Warning[] | undefined): HTMLElement | null {
  if (!list?.length) return null
  return h('ul', { class: 'doubts', 'aria-label': 'Warnings, most serious first' },
    list.map((d) => h('li', { class: `note ${d.kind === 'trust' ? '' : 'bad'}`.trim() }, d.text)))
}

/** outcome is how a run ended, in a sentence. */
export function outcome(s: State): string {
  const assertions = s.results.flatMap((r) => r.assertions ?? [])
  const held = assertions.filter((a) => a.held).length
  const trials = s.results.length < s.run.planned ? `Finished: ${s.results.length} of ${plural(s.run.planned, 'trial')}.`
    : s.doubts.length ? 'Finished.' : `Finished: ${plural(s.run.planned, 'valid trial')}.`
  return assertions.length ? `${trials} ${held} of ${assertions.length} assertions held.` : trials
}
