// Firing an event into the lab at hand: what, at whom, for how long.
import { h, replace } from '../ui/dom'
import { fire, type Cloud, type LabEvent } from './api'
import { trouble } from './pages'

type Aim = 'links' | 'nodes'
interface Kind {
  id: string
  name: string
  aim: Aim
  amount?: { label: string; value: string; hint: string }
  /** event is the kind's part of the event, of targets and an amount. */
  event(targets: string[], amount: string): object
}

/** kinds of events that are offered; docs/events.md has them all. */
export const kinds: Kind[] = [
  { id: 'cut', name: 'Cut links', aim: 'links', event: (ids) => ({ link_down: { ids } }) },
  { id: 'slow', name: 'Multiply latency', aim: 'links', amount: { label: 'times', value: '3', hint: '3' }, event: (ids, x) => ({ latency: { ids, scale: Number(x) } }) },
  { id: 'add', name: 'Add latency', aim: 'links', amount: { label: 'one way', value: '50ms', hint: '50ms' }, event: (ids, x) => ({ latency: { ids, add: x } }) },
  { id: 'lose', name: 'Lose packets', aim: 'links', amount: { label: 'share', value: '5%', hint: '5%' }, event: (ids, x) => ({ loss: { ids, rate: x } }) },
  { id: 'kill', name: 'Kill the database', aim: 'nodes', event: (nodes) => ({ kill: { nodes } }) },
  { id: 'pause', name: 'Pause all processes', aim: 'nodes', event: (nodes) => ({ pause: { nodes } }) },
  { id: 'isolate', name: 'Cut nodes off', aim: 'nodes', event: (nodes) => ({ link_down: { of: nodes } }) },
  { id: 'slowall', name: 'Multiply latency of nodes', aim: 'nodes', amount: { label: 'times', value: '3', hint: '3' }, event: (nodes, x) => ({ latency: { of: nodes, scale: Number(x) } }) },
  { id: 'cpu', name: 'Use up CPU', aim: 'nodes', amount: { label: 'cores', value: '1', hint: '1' }, event: (nodes, x) => ({ cpu: { nodes, cores: Number(x) } }) },
]

/** eventOf is the event to send; without a time it lasts to the trial's end. */
export function eventOf(kind: Kind, targets: string[], amount: string, lasting: string): object {
  return { ...kind.event(targets, amount.trim()), ...(lasting.trim() ? { for: lasting.trim() } : {}) }
}

export interface Firing {
  element: HTMLElement
  /** aim takes what the reader pointed out on the map. */
  aim(links: string[], nodes: string[], name: string): void
  /** ready says whether a trial measures. */
  ready(measuring: boolean): void
}

const mostChoices = 400

/** firing makes the form; told hears of what was fired. */
export function firing(run: string, cloud: Cloud, told: (e: LabEvent) => void): Firing {
  const what = h('select', { id: 'fire-what' }, kinds.map((k) => h('option', { value: k.id }, k.name)))
  const whom = h('select', { id: 'fire-whom' })
  const amount = h('input', { id: 'fire-amount', type: 'text', size: 6, autocomplete: 'off' })
  const amountField = h('label', { class: 'field', for: 'fire-amount' }, h('span', {}), amount)
  const lasting = h('input', { id: 'fire-for', type: 'text', size: 5, value: '10s', autocomplete: 'off', placeholder: 'to the end' })
  const button = h('button', { type: 'submit', class: 'primary' }, 'Fire')
  const outcome = h('div', { class: 'outcome', 'aria-live': 'polite' })
  let picked: { links: string[]; nodes: string[]; name: string } | undefined
  let busy = false
  let measuring = false

  const members = (cloud.nodes ?? []).filter((n) => n.role !== 'client').map((n) => n.name)
  const choices: Record<Aim, { name: string; targets: string[] }[]> = {
    links: (cloud.links ?? []).slice(0, mostChoices).map((l) => ({ name: `${l.a} – ${l.b}`, targets: [l.id] })),
    nodes: members.slice(0, mostChoices).map((n) => ({ name: n, targets: [n] })),
  }
  const kind = () => kinds.find((k) => k.id === what.value) ?? kinds[0]!

  function offered(): { name: string; targets: string[] }[] {
    const aim = kind().aim
    const own = picked?.[aim] ?? []
    return [...(picked && own.length ? [{ name: own.length > 1 ? `${picked.name} (${own.length} ${aim})` : picked.name, targets: own }] : []), ...choices[aim]]
  }

  function offer(): void {
    replace(whom, offered().map((c, i) => h('option', { value: i }, c.name)))
    const a = kind().amount
    amountField.hidden = !a
    if (a) {
      amountField.firstElementChild!.textContent = a.label
      amount.value = a.value
      amount.placeholder = a.hint
    }
  }

  function enable(): void {
    button.disabled = busy || !measuring
    button.title = measuring ? '' : 'Events can be fired while a trial measures'
  }

  async function send(e: Event): Promise<void> {
    e.preventDefault()
    const target = offered()[Number(whom.value)]
    if (!target || busy || !measuring) return
    busy = true
    enable()
    try {
      const got = await fire(run, eventOf(kind(), target.targets, amount.value, lasting.value))
      replace(outcome, h('p', { class: 'muted' }, `Fired: ${got.message}.`))
      told(got)
    } catch (e) {
      replace(outcome, trouble(e))
    } finally {
      busy = false
      enable()
    }
  }

  what.addEventListener('change', offer)
  const element = h('form', { class: 'firing', 'aria-label': 'Fire an event', onsubmit: (e: Event) => void send(e) },
    h('div', { class: 'controls' },
      h('label', { class: 'field', for: 'fire-what' }, 'Event', what), h('label', { class: 'field', for: 'fire-whom' }, 'at', whom),
      amountField, h('label', { class: 'field', for: 'fire-for' }, 'for', lasting), button),
    h('p', { class: 'muted small' }, 'It is recorded like an event of the experiment, taken back when its time is over, and makes this trial suspect: it is no repetition of the others.'),
    outcome)
  offer()
  enable()
  return {
    element,
    aim(links, nodes, name) {
      picked = { links, nodes: nodes.filter((n) => members.includes(n)), name }
      const aim: Aim = links.length ? 'links' : 'nodes'
      if (kind().aim !== aim) what.value = kinds.find((k) => k.aim === aim)!.id
      offer()
      whom.value = '0'
    },
    ready(m) {
      measuring = m
      enable()
    },
  }
}
