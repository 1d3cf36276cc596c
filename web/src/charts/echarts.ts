// The parts of ECharts that are used, drawn as SVG: sharp on paper, and what is seen can be kept.
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
