from iolab.api import Bins as Bins
from iolab.api import Intervals as Intervals
from iolab.api import IolabError as IolabError
from iolab.api import MeasuredPoint as MeasuredPoint
from iolab.api import Metric as Metric
from iolab.api import Rows as Rows
from iolab.api import Run as Run
from iolab.api import Session as Session
from iolab.api import Telemetry as Telemetry
from iolab.api import load as load
from iolab.api import run as run

__version__: str
API_VERSION: int
__all__: list[str]
