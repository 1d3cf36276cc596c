// The outlines of the continents: Natural Earth's, 1:110 million, public domain.
import world from 'world-atlas/land-110m.json'

interface Topology {
  arcs: number[][][]
  transform: { scale: number[]; translate: number[] }
  objects: { land: { geometries: { arcs: number[][][] }[] } }
}

/** isDateLine finds islands on the date line (Fiji): their two halves would be joined by a line across the map. */
const isDateLine = (ring: [number, number][]): boolean => ring.some(([lon], i) => i > 0 && Math.abs(lon - ring[i - 1]![0]) > 180)
  && ring.every(([, lat]) => Math.abs(lat) < 60)

/** land is rings of [longitude, latitude], from TopoJSON's quantised differences. */
export function land(): [number, number][][] {
  const t = world as unknown as Topology
  const [kx, ky] = t.transform.scale as [number, number]
  const [dx, dy] = t.transform.translate as [number, number]
  const arcs = t.arcs.map((arc) => {
    let x = 0
    let y = 0
    return arc.map((p): [number, number] => {
      x += p[0]!
      y += p[1]!
      return [x * kx + dx, y * ky + dy]
    })
  })
  return t.objects.land.geometries.flatMap((g) => g.arcs.flatMap((polygon) => polygon.map((ring) =>
    ring.flatMap((i, k) => {
      const arc = i >= 0 ? arcs[i]! : [...arcs[~i]!].reverse()
      return k === 0 ? arc : arc.slice(1)
    })))).filter((ring) => !isDateLine(ring))
}
