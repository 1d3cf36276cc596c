// Creation of elements. Data only ever becomes text nodes, so that names cannot inject markup.

type Child = Node | string | number | null | undefined | false | Child[]
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>

function append(parent: Element, child: Child): void {
  if (child === null || child === undefined || child === false) return
  if (Array.isArray(child)) {
    for (const c of child) append(parent, c)
    return
  }
  parent.append(child instanceof Node ? child : String(child))
}

function assign(e: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue
    if (typeof value === 'function') e.addEventListener(name.replace(/^on/, ''), value as EventListener)
    else e.setAttribute(name, value === true ? '' : String(value))
  }
}

/** h makes an element: h('p', { class: 'note', onclick: f }, 'text', child). */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {},
  ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag)
  assign(e, attributes)
  append(e, children)
  return e
}

/** s makes an SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {},
  ...children: Child[]): SVGElementTagNameMap[K] {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag)
  assign(e, attributes)
  append(e, children)
  return e
}

/** replace replaces the content of e. */
export function replace(e: Element, ...children: Child[]): void {
  e.replaceChildren()
  append(e, children)
}

/** download offers text as a file. */
export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const a = h('a', { href: url, download: name })
  document.body.append(a)
  a.click()
  a.remove()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

/** fileName converts a title to a file name in lower case with dashes. */
export function fileName(title: string, extension: string): string {
  const base = title.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 80)
  return `${base || 'chart'}.${extension}`
}
