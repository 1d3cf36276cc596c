// The sections on recovery, audits and assertions, fidelity, and reproduction.
import type { LawViolation, EventImpact, LinkFidelity } from '../go/record'
import type { Run, Trial } from '../go/webdata'
import { axisStyle, chart, frame, tip, tooltipStyle, type Chart } from '../charts/chart'
import { linkName } from '../charts/cloud'
import { readDetail } from '../data/load'
import { bytes, duration, figure, percent, thousands, units } from '../format/format'
import { h, replace } from '../ui/dom'
import { table } from '../ui/table'
import { badge, emulated } from './overview'
import { select } from './compare'

interface TrialEvent { trial: Trial; event: EventImpact }

/** recovery returns the section, or null for a run without events, assertions and audits. */
export function recovery(run: Run, open: (trial: number) => void): HTMLElement | null {
  const events = run.trials.flatMap((trial) => (trial.events ?? []).map((event): TrialEvent => ({ trial, event })))
  const asserted = run.trials.flatMap((t) => (t.assertions ?? []).map((a) => ({ t, a })))
  const audits = run.trials.flatMap((t) => (t.audit ? [{ t, a: t.audit }] : []))
  if (!events.length && !asserted.length && !audits.length) return null
  const link = (t: Trial) => h('a', { href: '#trial', onclick: () => open(t.id) }, `${t.id}`)
  const s = (v: number | undefined) => (v === undefined ? '–' : `${figure(v)} s`)
  return h('section', { class: 'part', id: 'recovery', 'aria-labelledby': 'h-recovery' }, h('h2', { id: 'h-recovery' }, 'Recovery'),
    h('p', { class: 'about' },
      'Effect of each event on the clients, compared with the time before it. “> 10 s” is a lower bound: service had not ' +
        'recovered when observation ended.'),
    h('div', { class: 'stack' },
      events.length ? h('div', { class: 'card' }, table<TrialEvent>([
        { head: 'trial', key: (r) => r.trial.id, cell: (r) => link(r.trial) },
        { head: 'event', cell: (r) => (r.event.name === r.event.kind ? r.event.name : `${r.event.name} (${r.event.kind})`) },
        { head: 'at', numeric: true, key: (r) => r.event.at_s, cell: (r) => s(r.event.at_s) },
        { head: 'complete', numeric: true, key: (r) => r.event.complete_s ?? NaN, cell: (r) => s(r.event.complete_s) },
        { head: 'available', numeric: true, key: (r) => r.event.recovery.availability,
          cell: (r) => percent(r.event.recovery.availability) },
        { head: 'no answer', numeric: true, key: (r) => r.event.recovery.unresponsive_s, cell: (r) => s(r.event.recovery.unresponsive_s) },
        { head: 'takeover', numeric: true, key: (r) => r.event.recovery.takeover_s ?? NaN, cell: (r) => s(r.event.recovery.takeover_s) },
        { head: 'recovered', numeric: true, key: (r) => r.event.recovery.recover_s + (r.event.recovery.censored ? 1e9 : 0),
          cell: (r) => (r.event.recovery.baseline_ops_s > 0 ? (r.event.recovery.censored ? '> ' : '') + s(r.event.recovery.recover_s)
          : '–') },
        { head: 'dip', numeric: true, key: (r) => r.event.recovery.dip_depth,
          cell: (r) => (r.event.recovery.baseline_ops_s > 0 ? percent(r.event.recovery.dip_depth) : '–') },
        { head: 'operations missing', numeric: true, key: (r) => r.event.recovery.dip_ops,
          cell: (r) => (r.event.recovery.baseline_ops_s > 0 ? thousands(r.event.recovery.dip_ops) : '–') },
      ], events, { label: 'Events and recovery', bad: (r) => r.event.recovery.censored === true })) : null,
      asserted.length ? h('div', { class: 'card' }, h('h3', {}, 'Assertions'), table([
        { head: 'trial', key: (r) => r.t.id, cell: (r) => link(r.t) }, { head: 'assertion', cell: (r) => h('code', {}, r.a.text) },
        { head: 'measured', cell: (r) => r.a.value || '–' },
        { head: 'result', cell: (r) => h('span', { class: `badge ${r.a.held ? 'good' : 'bad'}` }, r.a.held ? 'held' : 'failed') },
      ], asserted, { label: 'Assertions', bad: (r) => !r.a.held })) : null,
      audits.length ? h('div', { class: 'card' }, h('h3', {}, 'Audit of acknowledged writes'), table([
        { head: 'trial', key: (r) => r.t.id, cell: (r) => link(r.t) },
        ...([['acknowledged', 'acknowledged_writes'], ['in doubt', 'writes_in_doubt'], ['records read', 'audited_keys'],
          ['lost', 'lost_writes'], ['stale copies', 'stale_copies'], ['unexpected', 'unexpected_values'],
          ['unread', 'unread_keys']] as const)
          .map(([head, field]) => ({ head, numeric: true, key: (r: (typeof audits)[number]) => r.a[field],
            cell: (r: (typeof audits)[number]) => thousands(r.a[field]) })),
        { head: 'history', cell: (r) => r.a.history?.result ?? '–' },
      ], audits, { label: 'Audit', bad: (r) => r.a.lost_writes + r.a.stale_copies + r.a.unexpected_values + r.a.unread_keys > 0
        || r.a.history?.result === 'violated' })) : null))
}

/** fidelity is the section that compares link settings with measurements. */
export function fidelity(run: Run, open: (trial: number) => void): HTMLElement | null {
  if (!run.trials.length) return null
  const measured = run.trials.filter((t) => t.detail)
  const links = h('div', { class: 'stack' })
  let shown: Chart | undefined
  async function show(id: number): Promise<void> {
    try {
      const d = await readDetail(id)
      shown?.dispose()
      shown = undefined
      const rows = d.links ?? []
      if (!rows.length) return replace(links, h('p', { class: 'muted' }, 'The links of this trial were not probed.'))
      shown = chart(accuracy(rows))
      replace(links, shown.element, linkTable(rows))
    } catch (e) {
      replace(links, h('p', { class: 'note bad' },
        `The data of trial ${id} cannot be read: ${e instanceof Error ? e.message : String(e)}.`))
    }
  }
  const start = measured[0]
  const card = h('div', { class: 'card' }, h('h3', {}, 'All links: set and measured'),
    measured.length > 1 ? h('div', { class: 'controls' },
      select('Trial', measured.map((t): [string, string] => [String(t.id), `${t.id} · ${t.name}`]), String(start?.id),
      (v) => void show(Number(v)), 'Trial whose links are shown')) : null, links)
  if (start) void show(start.id)
  return h('section', { class: 'part', id: 'fidelity', 'aria-labelledby': 'h-fidelity' }, h('h2', { id: 'h-fidelity' }, 'Fidelity'),
    h('p', { class: 'about' },
      'Evidence that the emulation was accurate and that neither the client nor the machine was the bottleneck. Links were ' +
        'measured before the workload started.'),
    h('div', { class: 'stack' }, start ? card : null, packets(run, open),
      h('div', { class: 'card' }, h('h3', {}, 'Trials'), evidence(run, open))))
}

const lawNames: Record<string, string> = {
  early: 'arrived before its latency and jitter allow', late: 'arrived after its latency and jitter explain',
  fast: 'left the queue before its rate allows', slow: 'left the queue after its rate allows',
}

/** packets shows the worst violation of each link setting that the emulator observed during trials. */
function packets(run: Run, open: (trial: number) => void): HTMLElement | null {
  const accounts = run.trials.flatMap((t) => (t.fidelity.account ? [{ t, a: t.fidelity.account }] : []))
  const seen = accounts.reduce((sum, { a }) => sum + (a.packets ?? 0), 0)
  const why = accounts.find(({ a }) => a.not_measured)?.a.not_measured
  if (!seen && !why) return null
  const worst = new Map<string, { t: Trial, b: LawViolation, total: number }>()
  for (const { t, a } of accounts) {
    for (const b of a.broken ?? []) {
      const before = worst.get(b.law)
      const total = b.total + (before?.total ?? 0)
      const worse = before ? Number(b.beyond ?? false) - Number(before.b.beyond ?? false) || b.worst_ms - before.b.worst_ms : 1
      worst.set(b.law, before && worse <= 0 ? { ...before, total } : { t, b, total })
    }
  }
  const rows = Object.keys(lawNames).flatMap((law) => worst.get(law) ?? [])
  const about = !seen ? `Packets were not observed: ${why}.`
    : rows.length ? `${thousands(seen)} packets were compared with the settings in force at their time. A few may violate a ` +
      `setting while the machine delays the emulator.`
      : `All ${thousands(seen)} packets met the latency, jitter and rate in force at their time.`
  return h('div', { class: 'card' }, h('h3', {}, 'Packets and link settings'), h('p', { class: 'muted' }, about),
    rows.length ? table<(typeof rows)[number]>([
    { head: 'packets that', cell: (r) => lawNames[r.b.law] ?? r.b.law },
    { head: 'worst on link', cell: (r) => `${r.b.link} to ${r.b.to}` },
    { head: 'trial', key: (r) => r.t.id, cell: (r) => h('a', { href: '#trial', onclick: () => open(r.t.id) }, `${r.t.id}`) },
    { head: 'second', numeric: true, key: (r) => r.b.t, cell: (r) => (r.b.t < 0 ? 'all' : `${r.b.t}`) },
    { head: 'packets', numeric: true, key: (r) => r.b.packets, cell: (r) => `${thousands(r.b.packets)} of ${thousands(r.b.of)}` },
    { head: 'by up to', numeric: true, key: (r) => r.b.worst_ms, cell: (r) => units.milliseconds.write(r.b.worst_ms) },
    { head: 'in all trials', numeric: true, key: (r) => r.total, cell: (r) => thousands(r.total) },
  ], rows, { label: 'Packets and link settings', bad: (r) => !!r.b.beyond }) : null)
}

function accuracy(rows: LinkFidelity[]) {
  const answered = rows.filter((l) => l.answered && !l.real)
  const worst = Math.max(0, ...answered.map((l) => Math.abs(l.rtt_error_ms)))
  return {
    title: 'Round-trip error of each link', unit: 'milliseconds: measured median minus setting, by setting',
    describe: `${rows.length} links, ${rows.filter((l) => !l.answered).length} without an ` +
      `answer${rows.some((l) => l.real) ? `, ${rows.filter((l) => l.real).length} real` : ''}; the largest error is ` +
      `${units.milliseconds.write(worst)}.`,
    height: 260, points: answered.length,
    table: () => ({
      columns: ['link', 'from', 'to', 'set (ms)', 'median (ms)', 'p99 (ms)', 'error (ms)', 'set from-to (bit/s)',
        'measured from-to (bit/s)', 'set to-from (bit/s)', 'measured to-from (bit/s)'],
      rows: rows.map((l) => [l.id, l.from, l.to, l.real ? null : l.set_rtt_ms, l.answered ? l.rtt_ms : null,
        l.answered ? l.rtt_p99_ms : null, l.answered && !l.real ? l.rtt_error_ms : null, l.set_ab_bps ?? null, l.ab_bps ?? null,
        l.set_ba_bps ?? null, l.ba_bps ?? null]),
    }),
    option: (t: Parameters<typeof frame>[0]) => {
      const axis = axisStyle(t)
      return {
        ...frame(t), legend: { show: false }, grid: { left: 66, right: 24, top: 14, bottom: 44 },
        tooltip: {
          ...tooltipStyle(t), trigger: 'item', formatter: (p: { dataIndex: number }) => {
            const l = answered[p.dataIndex]
            return l ? tip(linkName(l.id, l.from, l.to),
              [{ name: 'set', value: units.milliseconds.write(l.set_rtt_ms) },
              { name: 'median measured', value: units.milliseconds.write(l.rtt_ms) },
              { name: 'error', value: units.milliseconds.write(l.rtt_error_ms) }]) : ''
          },
        },
        xAxis: { ...axis, type: 'value', name: 'round trip set', nameLocation: 'middle', nameGap: 28,
          axisLabel: { ...(axis['axisLabel'] as object), formatter: (v: number) => units.milliseconds.tick(v) },
          splitLine: { show: false } },
        yAxis: { ...axis, type: 'value', axisLine: { show: false },
          axisLabel: { ...(axis['axisLabel'] as object), formatter: (v: number) => `${figure(v)} ms` } },
        series: [{
          type: 'scatter', symbolSize: answered.length > 300 ? 4 : 8, itemStyle: { color: t.ok, opacity: 0.7 },
          data: answered.map((l) => [l.set_rtt_ms, l.rtt_error_ms]),
          markLine: { silent: true, symbol: 'none', label: { show: false }, lineStyle: { color: t.muted, type: 'dashed' },
            data: [{ yAxis: 0 }] },
        }],
      }
    },
  }
}

function linkTable(rows: LinkFidelity[]): HTMLElement {
  const real = rows.some((l) => l.real)
  const speed = (set?: number, got?: number) =>
    (set ? `${units.bitsPerSecond.write(set)}${got ? ` → ${units.bitsPerSecond.write(got)}` : ', not measured'}` : 'no limit')
  return table<LinkFidelity>([
    { head: 'link', cell: (l) => linkName(l.id, l.from, l.to) },
    { head: 'round trip set', numeric: true, key: (l) => l.set_rtt_ms,
      cell: (l) => (l.real ? 'real' : units.milliseconds.write(l.set_rtt_ms)) },
    { head: 'median', numeric: true, key: (l) => l.rtt_ms, cell: (l) => (l.answered ? units.milliseconds.write(l.rtt_ms) : 'no answer') },
    { head: 'p99', numeric: true, key: (l) => l.rtt_p99_ms, cell: (l) => (l.answered ? units.milliseconds.write(l.rtt_p99_ms) : '–') },
    { head: 'error', numeric: true, key: (l) => Math.abs(l.rtt_error_ms),
      cell: (l) => (l.answered && !l.real ? `${l.rtt_error_ms < 0 ? '−' : '+'}${units.milliseconds.write(Math.abs(l.rtt_error_ms))}`
      : '–') },
    ...(real ? [
      { head: 'median in the trial', numeric: true, key: (l: LinkFidelity) => l.seen?.rtt_median_ms ?? NaN,
        cell: (l: LinkFidelity) => (l.seen ? units.milliseconds.write(l.seen.rtt_median_ms) : '–') },
      { head: 'p99', numeric: true, key: (l: LinkFidelity) => l.seen?.rtt_p99_ms ?? NaN,
        cell: (l: LinkFidelity) => (l.seen ? units.milliseconds.write(l.seen.rtt_p99_ms) : '–') },
      { head: 'lost', numeric: true, key: (l: LinkFidelity) => l.seen?.lost ?? NaN,
        cell: (l: LinkFidelity) => (l.seen ? `${l.seen.lost} of ${l.seen.sent}` : '–') },
    ] : []),
    { head: 'bandwidth there: set → measured', numeric: true, key: (l) => l.set_ab_bps ?? 0,
      cell: (l) => (l.real ? 'real' : speed(l.set_ab_bps, l.ab_bps)) },
    { head: 'back', numeric: true, key: (l) => l.set_ba_bps ?? 0, cell: (l) => (l.real ? 'real' : speed(l.set_ba_bps, l.ba_bps)) },
  ], rows, { label: 'Links: set and measured', bad: (l) => !l.answered, most: 60 })
}

function evidence(run: Run, open: (trial: number) => void): HTMLElement {
  return table<Trial>([
    { head: 'trial', key: (t) => t.id, cell: (t) => h('a', { href: '#trial', onclick: () => open(t.id) }, `${t.id}`) },
    { head: 'verdict', cell: (t) => badge(t.state === 'ok' ? t.verdict.state : t.state) },
    { head: 'round trip error', numeric: true, key: (t) => t.fidelity.worst_rtt_error_ms,
      cell: (t) => (t.detail && emulated(t) ? units.milliseconds.write(t.fidelity.worst_rtt_error_ms) : '–') },
    { head: 'emulator late, p99', numeric: true, key: (t) => t.fidelity.emulator_late_p99_us,
      cell: (t) => (t.detail && t.fidelity.emulator_late_p99_us >= 0 ? duration(t.fidelity.emulator_late_p99_us) : 'not known') },
    { head: 'dropped', numeric: true, key: (t) => t.fidelity.emulator_drops, cell: (t) => thousands(t.fidelity.emulator_drops) },
    { head: 'client CPU', numeric: true, key: (t) => t.fidelity.client_cpu_cores, cell: (t) => figure(t.fidelity.client_cpu_cores) },
    { head: 'client late, p99', numeric: true, key: (t) => t.fidelity.client_late_p99_us,
      cell: (t) => duration(t.fidelity.client_late_p99_us) },
    { head: 'machine, cores', numeric: true, key: (t) => t.fidelity.host_cpu_cores,
      cell: (t) => `${figure(t.fidelity.host_cpu_cores)} of ${t.fidelity.host_cores}` },
    { head: 'other programs, cores', numeric: true, key: (t) => t.fidelity.others_cpu_cores ?? NaN,
      cell: (t) => (t.fidelity.others_cpu_cores === undefined ? 'not known' : figure(t.fidelity.others_cpu_cores)) },
    { head: 'stolen', numeric: true, key: (t) => t.fidelity.steal_share, cell: (t) => percent(t.fidelity.steal_share) },
    { head: 'why', class: 'why', cell: (t) => [...(t.verdict.reasons ?? [(t.error ?? '').split('\n')[0]!]), ...(t.verdict.notes ?? []),
      ...(t.replaced ?? []).map((r) =>
      `repeated: the attempt in ${r.dir} was ${r.verdict.state}: ${(r.verdict.reasons ?? []).join('; ')}`)].filter(Boolean).join('; ') },
  ], run.trials, { label: 'Evidence of every trial', bad: (t) => t.state !== 'ok' || t.verdict.state !== 'valid' })
}

/** reproduce is the section with the command and the environment. */
export function reproduce(run: Run): HTMLElement {
  const block = (text: string, label: string) => {
    const copy = h('button',
      { type: 'button', class: 'no-print', 'aria-label': `Copy ${label}`,
      onclick: () => void navigator.clipboard?.writeText(text).then(() => { copy.textContent = 'Copied' },
      () => { copy.textContent = 'Select and copy' }) }, 'Copy')
    return h('div', { class: 'command' }, h('pre', { class: 'tall', tabindex: 0, role: 'region', 'aria-label': label }, text), copy)
  }
  const text = run.file.text ?? ''
  return h('section', { class: 'part', id: 'reproduce', 'aria-labelledby': 'h-reproduce' },
    h('h2', { id: 'h-reproduce' }, 'Reproduce this'),
    h('p', { class: 'about' }, 'This command runs the experiment again from the recorded file. The seed fixes all random choices.'),
    h('div', { class: 'stack' },
      h('div', { class: 'card stack' }, h('h3', {}, 'Run it again'), block(run.again, 'Command'),
        run.command?.length ? h('p', { class: 'muted' }, 'Started as ', h('code', {}, run.command.join(' '))) : null),
      h('div', { class: 'pair' },
        h('div', { class: 'card' }, h('h3', {}, 'Environment'),
          h('dl', { class: 'facts' }, run.environment.map(([k, v]) => [h('dt', {}, k), h('dd', {}, v)]),
          run.order && run.order.length > 1 ? [h('dt', {}, 'Order of trials'), h('dd', {}, run.order.join(' '))] : null)),
        h('div', { class: 'card stack' },
          text ? [h('h3', {}, `Experiment file, ${bytes(text.length)}`), block(text, 'Experiment file')] : null,
          run.experiment ? h('details', {}, h('summary', {}, 'Expanded, with all defaults'),
            h('pre', { class: 'tall', tabindex: 0, role: 'region', 'aria-label': 'Experiment as expanded' }, pretty(run.experiment)))
            : null))))
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2)
  } catch {
    return json
  }
}
