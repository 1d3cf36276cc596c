// The page of a running run.
import { clock, duration, figure, units } from '../format/format'
import { h, replace } from '../ui/dom'
import type { Kind, Result } from '../go/live'
import type { Event as LabEvent, NodeSecond } from '../go/record'
import { reportOf, runs, streamOf } from './api'
import { firing, type Firing } from './firing'
import { liveCharts } from './livecharts'
import { liveMap, noMap, type LiveMap } from './livemap'
import { apply, empty, eventsOf, nodeConditions, type Model } from './model'
import { nodeTable, type NodeTable } from './nodes'
import { parameters } from '../charts/pairs'
import { badge, runAddress, errorMessage, type Page } from './pages'
import { tasksCard } from './tasks'
import { outcome, warningList } from './verdict'
import { follow, type Connection, type Stream } from './stream'

const pollInterval = 2000

/** livePage follows a run. Without a name it waits for the first running one. */
export function livePage(name: string): Page {
  const element = h('div', { class: 'page' })
  let inner: { close(): void } | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let closed = false

  async function findRun(): Promise<void> {
    try {
      const running = (await runs()).find((r) => r.state === 'running')
      if (closed) return
      if (running) {
        show(running.name)
        return
      }
      replace(element, h('section', { class: 'card waiting' }, h('h1', {}, 'No experiment is running'),
        h('p', {}, 'The next one appears here when it starts. Start one in a terminal:'),
        h('pre', {}, 'skerry run experiments/quickstart.yaml'),
        h('p', { class: 'muted' }, 'Finished runs are listed under ', h('a', { href: '#/runs' }, 'Runs'), '.')))
    } catch (e) {
      if (!closed) replace(element, errorMessage(e))
    }
    if (!closed) timer = setTimeout(() => void findRun(), pollInterval)
  }

  function show(run: string): void {
    const l = liveRun(run)
    inner = l
    replace(element, l.element)
  }

  if (name) show(name)
  else void findRun()
  return { title: 'Live', element, close() { closed = true; clearTimeout(timer); inner?.close() } }
}

function liveRun(name: string): { element: HTMLElement; close(): void } {
  let model: Model = empty()
  let map: LiveMap | undefined
  let table: NodeTable | undefined
  let fire: Firing | undefined
  let drawn: object | undefined // the cloud on the map
  let due = false
  const charts = liveCharts()
  const head = h('div', { class: 'livehead' })
  const connection = h('span', { role: 'status' })
  const figures = h('div', { class: 'figures' })
  const mapBox = h('div')
  const fireBox = h('div')
  const nodeBox = h('div')
  const list = h('ol', { class: 'events', 'aria-label': 'Events, newest first', tabindex: 0 })
  const results = h('div')
  const doubts = h('div')
  const taskBox = h('div')
  const reach = [[120, '2 min'], [300, '5 min'], [0, 'All']] as const
  const reachButtons = reach.map(([n, label]) =>
    h('button', { type: 'button', 'aria-pressed': n === 300 ? 'true' : 'false', onclick: () => {
    reachButtons.forEach((b, i) => b.setAttribute('aria-pressed', String(reach[i]![0] === n)))
    charts.reach(n)
  } }, label))
  const element = h('div', { class: 'live' }, head, doubts, taskBox, figures,
    h('div', { class: 'columns' },
      h('section', { class: 'card', 'aria-label': 'Map' }, mapBox, fireBox),
      h('section', { class: 'card', 'aria-label': 'Events' }, h('h2', {}, 'Events'), list)),
    h('section', { class: 'card curves', 'aria-label': 'Curves' },
      h('div', { class: 'controls reach' }, charts.picker,
      h('div', { class: 'segmented', role: 'group', 'aria-label': 'Time shown' }, reachButtons)), charts.elements),
    h('section', { class: 'card', 'aria-label': 'Nodes' }, h('h2', {}, 'Nodes'), nodeBox), results)

  function handleMessage(kind: Kind, data: unknown): void {
    model = apply(model, kind, data)
    if (kind === 'links') map?.links(model.links)
    if (kind === 'event') condition() // the rest of the page waits for the next frame
    if (due) return
    due = true
    // A background page draws once when it becomes visible.
    requestAnimationFrame(() => {
      due = false
      draw()
    })
  }

  const last = (): Map<string, NodeSecond> => new Map([...model.history].map(([n, rows]) => [n, rows.at(-1)!]))

  function condition(): void {
    const c = nodeConditions(model.state.events)
    map?.nodes(c, last())
    table?.update(model.history, c)
  }

  function cloud(): void {
    const c = model.state.cloud
    if (c === drawn) return
    drawn = c
    map?.close()
    map = table = fire = undefined
    charts.cloud(c)
    if (!c) {
      replace(mapBox, noMap('Starting the lab.'))
      replace(fireBox)
      replace(nodeBox)
      return
    }
    fire = firing(name, c, (e: LabEvent) => handleMessage('event', model.state.events.find((x) => x.id === e.id) ?? e))
    map = liveMap(c, (p) => fire?.aim(p.links.map((l) => l.id), p.nodes, p.name))
    table = nodeTable(c)
    replace(mapBox, map.element)
    replace(fireBox, fire.element)
    replace(nodeBox, table.element)
    map.links(model.links)
  }

  function draw(): void {
    const { run, trial, events } = model.state
    cloud()
    condition()
    fire?.ready(trial?.measuring ?? false)
    charts.update(model)
    replace(doubts, warningList(model.state.doubts))
    replace(taskBox, tasksCard(model.state.tasks))
    replace(head, h('div', {},
      h('h1', {}, run.experiment || name), run.description ? h('p', { class: 'muted' }, run.description) : null,
      h('p', { class: 'tiles' }, trial ? h('span', { class: 'parameter' }, `trial ${trial.number} of ${run.planned}`) : null,
        parameters(trial?.parameters))),
    h('div', { class: 'stage' }, connection,
      h('p', {}, model.over ? outcome(model.state)
      : trial?.stage ?? (model.state.tasks ? 'Trials run on other machines.' : 'Preparing the next trial.')), progress(), 
      h('p', { class: 'small' }, h('a', { href: runAddress(name) }, 'Notes and trials'), ' · ',
        h('a', { href: reportOf(name), target: '_blank', rel: 'noopener' }, 'Report so far'))))
    replace(figures, tiles())
    replace(list, eventsOf(events).slice(0, 100).map(eventRow), eventsOf(events).length ? null : h('li', { class: 'muted' }, 'None yet.'))
    replace(results, model.state.results.length ? h('section', { class: 'card', 'aria-label': 'Ended trials' }, h('h2', {}, 'Ended trials'),
      h('ul', { class: 'results' },
        model.state.results.map((r) => h('li', {}, `Trial ${r.id} `,
        badge(r.state === 'ok' ? r.verdict ?? 'ok' : r.state, r.state !== 'ok' ? 'bad' : r.verdict === 'valid' ? 'good' : 'warn'),
        r.state === 'ok' ? ` ${units.opsPerSecond.write(r.goodput_ops_s)}` : ` ${r.error ?? ''}`, more(r))))) : null)
  }

  function progress(): HTMLElement | null {
    const t = model.state.trial
    const at = model.state.seconds.at(-1)?.t
    if (!t?.measuring || at === undefined) return null
    const done = Math.max(0, at + 1)
    return t.limit_s ? h('div', { class: 'progress' },
      h('progress', { max: t.limit_s, value: Math.min(done, t.limit_s), 'aria-label': 'Measured time' }),
      h('span', { class: 'small muted' }, `${clock(done)} of ${clock(t.limit_s)}`))
      : h('p', { class: 'small muted' }, `${clock(done)} measured`)
  }

  function tiles(): HTMLElement[] {
    const x = model.state.seconds.at(-1)
    const host = model.history.get('@host')?.at(-1)
    const per = (n: number | undefined) => (x && n !== undefined ? n / Math.max(0.001, x.length_s) : undefined)
    const tile = (label: string, value: string, kind = '') => h('div', { class: `figure ${kind}` }, h('span', { class: 'value' }, value),
      h('span', { class: 'muted' }, label))
    const bad = (x?.failed ?? 0) + (x?.unknown ?? 0)
    const net = model.state.network
    return [
      tile('goodput, ops/s', figure(per(x?.ok))), tile('p50', x?.response_p50_us ? duration(x.response_p50_us) : '–'),
      tile('p95', x?.response_p95_us ? duration(x.response_p95_us) : '–'),
      tile('p99', x?.response_p99_us ? duration(x.response_p99_us) : '–'),
      tile('not ok, ops/s', figure(per(bad)), bad > 0 ? 'bad' : ''), tile('in flight', figure(x?.in_flight)),
      tile('machine, cores', figure(host?.cpu_cores)),
      // This tile appears late, and is the last, so that the others do not move.
      ...(net ? [tile(`routed round trip${net.unreachable ? `; ${net.unreachable} pairs unreachable` : ''}`,
        units.milliseconds.write(net.rtt_mean_ms), net.unreachable ? 'bad' : '')] : []),
    ]
  }

  function showConnection(c: Connection): void {
    const text = { connecting: 'connecting', live: 'live', lost: 'connection lost, trying again', ended: 'ended' }[c]
    replace(connection, badge(text, c === 'live' ? 'good' : c === 'lost' ? 'bad' : ''))
  }

  const stream: Stream = follow((after) => streamOf(name, after), { message: handleMessage, connection: showConnection })
  draw()
  return { element, close() { stream.close(); charts.close(); map?.close() } }
}

/** more lists the reasons for a suspect verdict and the assertions of an ended trial. */
function more(r: Result): HTMLElement | null {
  const lines = [...(r.reasons ?? []),
    ...(r.assertions ?? []).map((a) => (a.held ? `${a.text} held (${a.value})` : `${a.text} failed (${a.value || 'not measured'})`))]
  return lines.length ? h('ul', { class: 'small muted' }, lines.map((x) => h('li', {}, x))) : null
}

/** eventRow is an event in the list. */
export function eventRow(e: LabEvent): HTMLElement {
  const kind = { begun: 'warn', active: 'warn', reverted: 'good', failed: 'bad', skipped: '' }[e.state ?? ''] ?? ''
  return h('li', {}, h('span', { class: 'when muted' }, clock(e.t)),
    h('div', {}, h('p', {}, e.name ? h('b', {}, `${e.name}: `) : null, e.message),
      h('p', {}, badge(e.state ?? '', kind as 'good'), e.source === 'ui' ? badge('by hand') : null,
      e.error ? h('span', { class: 'small' }, ` ${e.error.split('\n')[0] ?? ''}`) : null)))
}
