// The overview: validity, highlights and results of the run.
import type { Cell, Latencies, Run, Trial } from '../go/webdata'
import { withInterval } from '../charts/comparison'
import { clock, duration, figure, percent, thousands } from '../format/format'
import { h } from '../ui/dom'
import { table, type Column } from '../ui/table'

/** badge is a coloured verdict or state. */
export function badge(state: string): HTMLElement {
  const kind = state === 'valid' || state === 'ok' ? 'good' : state.includes('failed') ? 'bad' : state.includes('suspect')
    || state.includes('not run') || state.includes('interrupted') ? 'warn' : ''
  return h('span', { class: `badge ${kind}` }, state)
}

/** overview is the section. */
export function overview(run: Run, open: (trial: number) => void): HTMLElement {
  const findings = run.findings ?? []
  return h('section', { class: 'part', id: 'overview', 'aria-labelledby': 'h-overview' },
    h('h2', { id: 'h-overview' }, 'Overview'),
    h('div', { class: 'stack' },
      run.unfinished ? h('p', { class: 'note bad' }, run.unfinished) : null,
      kpis(run),
      highlights(run, open),
      findings.length ? h('details', {}, h('summary', {}, `All findings (${findings.length})`),
        h('ul', { class: 'plain' }, findings.map((f) => h('li', {}, f)))) : null,
      run.cells.length ? h('div', { class: 'card' }, h('h3', {}, 'Results'), results(run, open)) : null,
      [...(run.warnings ?? []), ...(run.notes ?? [])].length
        ? h('details', {}, h('summary', {}, 'Warnings and notes'),
          h('ul', { class: 'plain' }, [...(run.warnings ?? []), ...(run.notes ?? [])].map((w) => h('li', {}, w)))) : null))
}

/** emulated says that a trial's links were emulated: only those have an error. */
export const emulated = (t: Trial): boolean => (t.fidelity.links ?? []).some((l) => !l.real)

function kpis(run: Run): HTMLElement {
  const t = run.tally
  const sum = (f: (x: Trial) => number) => run.trials.reduce((n, x) => n + f(x), 0)
  const ok = sum((x) => x.outcomes.ok)
  const all = sum((x) => x.outcomes.ok + x.outcomes.failed + x.outcomes.unknown + x.outcomes.dropped)
  const worst = Math.max(0, ...run.trials.map((x) => x.fidelity.worst_rtt_error_ms))
  const kpi = (value: string, what: string, kind = '') => h('div', { class: `kpi ${kind}` }, h('b', {}, value), h('span', {}, what))
  const took = run.finished && !run.unfinished ? (Date.parse(run.finished) - Date.parse(run.started)) / 1000 : 0
  return h('div', { class: 'kpis' },
    kpi(`${t.valid} of ${t.planned}`, 'trials valid', t.valid === t.planned && t.planned > 0 && !(run.highlights ?? []).some((x) => x.bad)
      ? 'good' : 'bad'),
    kpi(thousands(all), 'operations measured'),
    all > 0 ? kpi(ok === all ? 'none' : percent((all - ok) / all), 'of operations not ok', ok === all ? 'good' : 'bad') : null,
    run.trials.some(emulated) ? kpi(`${figure(worst)} ms`, 'largest error of a link’s round trip') : null,
    took > 0 ? kpi(clock(took), took >= 120 ? 'minutes from first to last trial' : 'from first to last trial') : null)
}

function highlights(run: Run, open: (trial: number) => void): HTMLElement | null {
  const list = run.highlights ?? []
  if (list.length === 0) return h('p', { class: 'card empty' }, run.trials.length ? 'No trial has results.' : 'No trial has finished yet.')
  return h('div', { class: 'card' }, h('h3', { class: 'visually-hidden' }, 'Highlights'),
    h('ol', { class: 'highlights' }, list.map((x) => h('li', { class: x.bad ? 'bad' : '' },
      h('span', {}, x.text, ' ', x.trial ? h('a', { href: '#trial', onclick: () => open(x.trial!) }, `See trial ${x.trial}`) : null)))))
}

/** lines shows one line for each operation of a cell. */
function lines(c: Cell, of: (l: Latencies) => string): HTMLElement | string {
  return c.latencies.length ? h('span', { class: 'lines' }, c.latencies.map((l) => h('span', {}, of(l)))) : '–'
}

function results(run: Run, open: (trial: number) => void): HTMLElement {
  const most = Math.max(1, ...run.cells.map((c) => c.estimates['goodput']?.mean ?? 0))
  const estimate = (c: Cell, id: string) => c.estimates[id]?.mean ?? NaN
  const latency = (id: string): Column<Cell> => ({
    head: id === 'p999' ? 'p99.9' : id, numeric: true, key: (c) => estimate(c, id),
    cell: (c) => lines(c, (l) => (l.estimates[id] ? duration(l.estimates[id].mean) : '–')),
  })
  const names: Column<Cell>[] = run.vary.length
    ? run.vary.map((a, i) => ({ head: a.label, key: (c) => c.values[i] ?? 0, cell: (c) => a.values[c.values[i] ?? -1] ?? '–' }))
    : [{ head: 'cell', cell: (c) => c.label }]
  const ops = { name: '', write: figure, tick: figure }
  return table<Cell>([
    ...names,
    {
      head: 'goodput, operations/s', class: 'bar', key: (c) => estimate(c, 'goodput'), cell: (c) => {
        const e = c.estimates['goodput']
        if (!e) return '–'
        const bar = h('i')
        bar.style.width = `${(92 * e.mean) / most}%`
        return h('span', {}, withInterval(e, ops), bar)
      },
    },
    { head: 'operation', cell: (c) => lines(c, (l) => l.operation) },
    latency('p50'), latency('p95'), latency('p99'), latency('p999'),
    { head: 'not ok', numeric: true, key: (c) => estimate(c, 'errors'),
      cell: (c) => (c.estimates['errors'] ? percent(estimate(c, 'errors')) : '–') },
    { head: 'bytes/op', numeric: true, key: (c) => estimate(c, 'traffic_op'),
      cell: (c) => (c.estimates['traffic_op'] ? figure(estimate(c, 'traffic_op')) : '–') },
    { head: 'n', numeric: true, key: (c) => c.estimates['goodput']?.n ?? 0, cell: (c) => c.estimates['goodput']?.n ?? 0 },
    ...(run.cells.some((c) => c.bound) ? [{ head: 'bound by', cell: (c: Cell) => c.bound ?? '–' }] : []),
    ...(run.cells.some((c) => c.made_by) ? [{ head: 'p99 made by', cell: (c: Cell) => c.made_by ?? '–' }] : []),
    { head: 'verdict', cell: (c) => badge(c.verdict) },
    { head: 'trials', cell: (c) =>
      h('span', {}, c.trials.slice(0, 12).flatMap((id) =>
      [h('a', { href: '#trial', 'aria-label': `Trial ${id}`, onclick: () => open(id) }, String(id)), ' '])) },
  ], run.cells, { label: 'Results' })
}
