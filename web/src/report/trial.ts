// The section of one trial: time series, latencies, traffic and map.
import type { LatencyCause } from '../go/record'
import type { Detail, Run, Trial } from '../go/webdata'
import { chart, type Chart } from '../charts/chart'
import { distribution, heatmap } from '../charts/latency'
import { siteMap, type SiteMap } from '../charts/map'
import { trafficGraph, trafficMatrix } from '../charts/traffic'
import { gridLeft, gridRight, panel } from '../charts/timeseries'
import { readDetail } from '../data/load'
import { duration, figure, percent, thousands } from '../format/format'
import { h, replace } from '../ui/dom'
import { table } from '../ui/table'
import { badge } from './overview'
import { coloursOf, lastOf, panelsOf } from './panels'
import { select } from './compare'

/** Shown is the section with a function that opens another trial. */
export interface Shown { element: HTMLElement; open(id: number): Promise<void> }

/** trials returns the section of single trials. */
export function trials(run: Run): Shown {
  const head = h('div', { class: 'trial-head' })
  const body = h('div', { class: 'stack', 'aria-live': 'polite' })
  let live: { dispose(): void }[] = []
  let wanted = 0

  async function open(id: number): Promise<void> {
    const trial = run.trials.find((t) => t.id === id)
    if (!trial) return
    wanted = id
    const at = run.trials.indexOf(trial)
    const step = (by: number, text: string) =>
      h('button', { type: 'button', disabled: !run.trials[at + by], onclick: () => void open(run.trials[at + by]!.id) }, text)
    replace(head,
      run.trials.length > 1 ? [
        select('Trial', run.trials.map((t): [string, string] => [String(t.id), optionOf(t)]), String(id), (v) => void open(Number(v))),
        h('span', { class: 'segmented' }, step(-1, 'Previous'), step(1, 'Next'))] : null,
      badge(trial.state === 'ok' ? trial.verdict.state : trial.state))
    for (const x of live) x.dispose()
    live = []
    const summary = summaryOf(trial)
    replace(body, summary)
    if (!trial.detail) return
    try {
      const detail = await readDetail(id)
      if (wanted !== id) return
      const parts = detailParts(trial, detail)
      live = parts.live
      replace(body, summary, parts.elements)
    } catch (e) {
      replace(body, summary, h('p', { class: 'note bad' },
        `The data of this trial cannot be read: ${e instanceof Error ? e.message : String(e)}.`))
    }
  }

  return {
    open,
    element: h('section', { class: 'part', id: 'trial', 'aria-labelledby': 'h-trial' }, h('h2', { id: 'h-trial' }, 'Trials'),
      h('p', { class: 'about' },
        'All panels share one time axis; the map shows the links at the moment under the cursor. Ctrl + wheel zooms; arrow keys ' +
          'move along a focused chart.'), head, body),
  }
}

/** optionOf returns the text of a trial in the selector, with its verdict unless it is valid. */
function optionOf(t: Trial): string {
  const state = t.state === 'ok' ? t.verdict.state : t.state
  return `${t.id} · ${t.name}${state === 'valid' ? '' : ` · ${state}`}`
}

/** made describes the main cause of a percentile of the response time. */
function made(percentile: string, c: LatencyCause): HTMLElement {
  return h('span', {}, h('b', {}, `${percentile}: `), `${c.by}${c.what ? ` ${c.what}` : ''}: ${c.text}.`,
    c.of_machine ? ' The cause is this machine, not the database.' : '')
}

function summaryOf(t: Trial): HTMLElement {
  const title = h('h3', {}, `Trial ${t.id}: ${t.name}`)
  if (t.state !== 'ok') {
    return h('div', { class: 'card' }, title,
      h('p', { class: 'note bad failure' }, t.error || `The trial is ${t.state}; it measured nothing.`))
  }
  const o = t.outcomes
  const facts: [string, string][] = [
    ['Goodput', `${figure(t.values['goodput'])}${t.goodput_half ? ` ± ${figure(t.goodput_half)}` : ''} ` +
      `operations/s${t.goodput_half ? ', from batches' : ''}`],
    ['Operations', `${thousands(o.ok)} ok, ${thousands(o.failed)} failed, ${thousands(o.unknown)} unknown, ` +
      `${thousands(o.dropped)} dropped`],
    ['Measured', `${figure(t.duration_s)} s after ${figure(t.warmup_s)} s of warm-up and ${figure(t.setup_s)} s of ` +
      `setup${t.stopped ? `; stopped by ${t.stopped}` : ''}`],
  ]
  const operations = Object.entries(t.operations ?? {}).filter(([, s]) => s.count > 0)
  return h('div', { class: 'card stack' }, title,
    t.bound ? h('p', {}, h('b', {}, 'Bound: '), t.bound.text, '.') : null,
    t.latency_bound ? h('p', {}, made('Median', t.latency_bound.p50), ' ', made('99th percentile', t.latency_bound.p99),
      (t.latency_bound.p99.not_known ?? []).map((u) => ` Not known: ${u}.`)) : null,
    t.verdict.reasons?.length ? h('div', { class: 'note' }, h('b', {}, 'Suspect: '), t.verdict.reasons.join('; ')) : null,
    t.verdict.notes?.length ? h('p', {}, h('b', {}, 'Disturbed: '), t.verdict.notes.join('; '), '.') : null,
    h('dl', { class: 'facts' }, facts.map(([k, v]) => [h('dt', {}, k), h('dd', {}, v)])),
    operations.length ? table([
      { head: 'operation', cell: ([name]) => name },
      { head: 'ok', numeric: true, key: ([, s]) => s.count, cell: ([, s]) => thousands(s.count) },
      { head: 'not ok', numeric: true, key: ([, s]) => s.failed, cell: ([, s]) => thousands(s.failed) },
      ...(['mean', 'p50', 'p95', 'p99', 'p999', 'max'] as const).map((q) => ({
        head: q === 'p999' ? 'p99.9' : q, numeric: true,
        key: ([, s]: (typeof operations)[number]) => (s.response_us.max ? s.response_us : s.service_us)[q],
        cell: ([, s]: (typeof operations)[number]) => duration((s.response_us.max ? s.response_us : s.service_us)[q]),
      })),
    ], operations, { label: `Response times of trial ${t.id}` }) : null)
}

function detailParts(trial: Trial, d: Detail): { elements: HTMLElement[]; live: { dispose(): void }[] } {
  const live: { dispose(): void }[] = []
  const elements: HTMLElement[] = []
  const addChart = (c: Chart) => {
    live.push(c)
    return c.element
  }
  if (d.notes?.length) elements.push(h('div', { class: 'note' }, h('b', {}, 'Unreadable data of this trial: '), d.notes.join('; ')))
  let map: SiteMap | undefined
  if (d.cloud?.nodes?.length) {
    map = siteMap(d.cloud, d.bands ?? [])
    live.push(map)
  }
  const panels = timeline(d, (t) => map?.at(t))
  live.push(...panels.live)
  if (panels.element) elements.push(panels.element)
  if (map) elements.push(h('div', { class: 'card' }, map.element))
  const latencies = [
    ...(d.curves?.length ? [addChart(chart(distribution(d.curves)))] : []),
    ...(d.heat ? [addChart(chart(heatmap(d.heat, d.bands ?? [], lastOf(d))))] : []),
  ]
  if (latencies.length) elements.push(h('div', { class: 'card pair' }, latencies))
  if (trial.errors?.length) elements.push(errors(trial))
  if (d.traffic) {
    elements.push(h('div', { class: 'card pair' }, addChart(chart(trafficGraph(d.traffic, coloursOf(d)))),
      addChart(chart(trafficMatrix(d.traffic)))))
  }
  if (!elements.length) elements.push(h('p', { class: 'card empty' }, 'No other data of this trial was recorded.'))
  return { elements, live }
}

function errors(t: Trial): HTMLElement {
  const all = t.outcomes.ok + t.outcomes.failed + t.outcomes.unknown + t.outcomes.dropped
  return h('div', { class: 'card' }, h('h3', {}, 'Failed operations'), table([
    { head: 'operation', cell: (e) => e.operation }, { head: 'outcome', cell: (e) => e.outcome }, { head: 'class', cell: (e) => e.class },
    { head: 'node', cell: (e) => e.node ?? '' }, { head: 'count', numeric: true, key: (e) => e.count, cell: (e) => thousands(e.count) },
    { head: 'of all', numeric: true, key: (e) => e.count, cell: (e) => percent(e.count / Math.max(1, all)) },
    { head: 'example', cell: (e) => e.example ?? '' },
  ], [...(t.errors ?? [])].sort((a, b) => b.count - a.count), { label: `Errors of trial ${t.id}` }))
}

/** timeline stacks the panels with a common time axis, cursor and zoom. */
function timeline(d: Detail, moved: (t: number) => void): { element: HTMLElement | null; live: Chart[] } {
  const panels = panelsOf(d)
  const cursor = h('div', { class: 'cursor', hidden: true })
  const live: Chart[] = []
  const holder = h('div', { class: 'panels' })
  const move = (plot: HTMLElement, p: { t: number[]; last: number }, share: number) => {
    const first = p.t[0] ?? 0
    const t = first + share * (p.last - first)
    const box = plot.getBoundingClientRect()
    cursor.hidden = share < 0 || share > 1
    cursor.style.left = `${box.left - holder.getBoundingClientRect().left + gridLeft + share * (box.width - gridLeft - gridRight)}px`
    if (!cursor.hidden) moved(t)
  }
  let zoom: { start: number; end: number } = { start: 0, end: 100 }
  for (const p of panels) {
    const spec = panel(p)
    const first = p.t[0] ?? 0
    const shareOf = (t: number) => {
      const whole = (t - first) / Math.max(1e-9, p.last - first)
      return (whole * 100 - zoom.start) / Math.max(1e-9, zoom.end - zoom.start)
    }
    const c = chart({
      ...spec,
      moved: (at) => {
        const t = p.t[at] ?? 0
        move(plot, p, shareOf(t))
        moved(t)
      },
      ready: (drawing) => {
        if (zoom.start > 0 || zoom.end < 100) drawing.dispatchAction({ type: 'dataZoom', ...zoom })
        drawing.on('datazoom', (e) => {
          const event = e as { batch?: { start: number; end: number }[] }
          const to = event.batch?.[0]
          if (!to || (to.start === zoom.start && to.end === zoom.end)) return
          zoom = { start: to.start, end: to.end }
          for (const other of live) if (other !== c) other.instance()?.dispatchAction({ type: 'dataZoom', ...zoom })
        })
      },
    })
    live.push(c)
    const plot = c.element.querySelector<HTMLElement>('.plot')!
    plot.addEventListener('pointermove', (e) => {
      const box = plot.getBoundingClientRect()
      const share = (e.clientX - box.left - gridLeft) / Math.max(1, box.width - gridLeft - gridRight)
      move(plot, p, share)
      const whole = (zoom.start + share * (zoom.end - zoom.start)) / 100
      if (share >= 0 && share <= 1) moved(first + whole * (p.last - first))
    })
    plot.addEventListener('pointerleave', () => { cursor.hidden = true })
    holder.append(h('div', { class: 'card' }, c.element))
  }
  holder.append(cursor)
  return { element: panels.length ? holder : null, live }
}
