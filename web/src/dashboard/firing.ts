// The form that injects an event into a running lab.
import { linkName } from '../charts/cloud'
import type { Offer } from '../go/event'
import type { Cloud } from '../go/live'
import { offers } from '../go/offers'
import type { Event as LabEvent } from '../go/record'
import { h, replace } from '../ui/dom'
import { fire } from './api'
import { errorMessage } from './pages'

type Aim = 'links' | 'nodes'

/** eventOf builds the event to send. Without a duration it lasts until the trial ends. */
export function eventOf(offer: Offer, targets: string[], amount: string, lasting: string): object {
  const { kind, targets: key, amount: a } = offer
  const of = { [key]: targets, ...(a ? { [a.key]: a.number ? Number(amount.trim()) : amount.trim() } : {}) }
  return { [kind]: of, ...(lasting.trim() ? { for: lasting.trim() } : {}) }
}

export interface Firing {
  element: HTMLElement
  /** aim selects targets from the map. */
  aim(links: string[], nodes: string[], name: string): void
  /** ready enables the form while a trial measures. */
  ready(measuring: boolean): void
}

const mostChoices = 400

/** firing creates the form. onFired is called with each injected event. */
export function firing(run: string, cloud: Cloud, onFired: (e: LabEvent) => void): Firing {
  const what = h('select', { id: 'fire-what' }, offers.map((o) => h('option', { value: o.id }, o.title)))
  const whom = h('select', { id: 'fire-whom' })
  const amount = h('input', { id: 'fire-amount', type: 'text', size: 6, autocomplete: 'off' })
  const amountField = h('label', { class: 'field', for: 'fire-amount' }, h('span', {}), amount)
  const lasting = h('input', { id: 'fire-for', type: 'text', size: 5, value: '10s', autocomplete: 'off', placeholder: 'until end' })
  const button = h('button', { type: 'submit', class: 'primary' }, 'Fire')
  const outcome = h('div', { class: 'outcome', 'aria-live': 'polite' })
  let picked: { links: string[]; nodes: string[]; name: string } | undefined
  let busy = false
  let measuring = false

  const members = (cloud.nodes ?? []).filter((n) => n.role !== 'client').map((n) => n.name)
  const choices: Record<Aim, { name: string; targets: string[] }[]> = {
    links: (cloud.links ?? []).slice(0, mostChoices).map((l) => ({ name: linkName(l.id, l.a, l.b), targets: [l.id] })),
    nodes: members.slice(0, mostChoices).map((n) => ({ name: n, targets: [n] })),
  }
  const offer = () => offers.find((o) => o.id === what.value) ?? offers[0]!

  function offered(): { name: string; targets: string[] }[] {
    const aim = offer().on as Aim
    const own = picked?.[aim] ?? []
    return [...(picked && own.length ? [{ name: own.length > 1 ? `${picked.name} (${own.length} ${aim})` : picked.name, targets: own }]
      : []), ...choices[aim]]
  }

  function show(): void {
    replace(whom, offered().map((c, i) => h('option', { value: i }, c.name)))
    const a = offer().amount
    amountField.hidden = !a
    if (a) {
      amountField.firstElementChild!.textContent = a.label
      amount.value = a.value
      amount.placeholder = a.value
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
      const got = await fire(run, eventOf(offer(), target.targets, amount.value, lasting.value))
      replace(outcome, h('p', { class: 'muted' }, `Fired: ${got.message}.`))
      onFired(got)
    } catch (e) {
      replace(outcome, errorMessage(e))
    } finally {
      busy = false
      enable()
    }
  }

  what.addEventListener('change', show)
  const element = h('form', { class: 'firing', 'aria-label': 'Fire an event', onsubmit: (e: Event) => void send(e) },
    h('div', { class: 'controls' },
      h('label', { class: 'field', for: 'fire-what' }, 'Event', what), h('label', { class: 'field', for: 'fire-whom' }, 'at', whom),
      amountField, h('label', { class: 'field', for: 'fire-for' }, 'for', lasting), button),
    h('p', { class: 'muted small' },
      'The event is reverted after its duration. It makes this trial suspect, because other trials do not have it.'),
    outcome)
  show()
  enable()
  return {
    element,
    aim(links, nodes, name) {
      picked = { links, nodes: nodes.filter((n) => members.includes(n)), name }
      const aim: Aim = links.length ? 'links' : 'nodes'
      if (offer().on !== aim) what.value = offers.find((o) => o.on === aim)!.id
      show()
      whom.value = '0'
    },
    ready(m) {
      measuring = m
      enable()
    },
  }
}
