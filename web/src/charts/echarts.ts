// The required parts of ECharts, with the SVG renderer for sharp prints and downloads.
import { BarChart, CustomChart, GraphChart, HeatmapChart, LineChart, ScatterChart } from 'echarts/charts'
import { AriaComponent, AxisPointerComponent, DataZoomComponent, GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent,
  TooltipComponent, VisualMapComponent } from 'echarts/components'
import { init, use } from 'echarts/core'
import { SVGRenderer } from 'echarts/renderers'

use([BarChart, CustomChart, GraphChart, HeatmapChart, LineChart, ScatterChart, AriaComponent, AxisPointerComponent, DataZoomComponent,
  GridComponent,
  LegendComponent, MarkAreaComponent, MarkLineComponent, TooltipComponent, VisualMapComponent, SVGRenderer])

export { init }
export type { ECharts, EChartsCoreOption as Option } from 'echarts/core'
