// Documents embedded in the page: JSON, gzip, base 64.
import { schema, type Detail, type Run } from '../go/webdata'

/** unpack decodes a document. */
export async function unpack(text: string): Promise<unknown> {
  const raw = atob(text.trim())
  const bytes = new Uint8Array(raw.length)
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i)
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))
  return JSON.parse(await new Response(stream).text())
}

async function read(name: string): Promise<unknown> {
  const text = document.getElementById(`data-${name}`)?.textContent
  if (!text) throw new Error(`this page has no data of ${name}`)
  const value = await unpack(text)
  if ((value as { schema?: unknown }).schema !== schema) throw new Error(`its data are not ${schema}`)
  return value
}

/** readRun returns the document of the run. */
export async function readRun(): Promise<Run> {
  return (await read('run')) as Run
}

const details = new Map<number, Promise<Detail>>()

/** readDetail returns the document of a trial. It is decoded once. */
export function readDetail(id: number): Promise<Detail> {
  let d = details.get(id)
  if (!d) {
    d = read(`trial-${id}`).then((v) => v as Detail)
    details.set(id, d)
  }
  return d
}
