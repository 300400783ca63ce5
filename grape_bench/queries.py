"""The questions that a leaderboard puts to DuckDB, in the order in which they are asked."""

from grape_bench.environment import COMPARED
from grape_bench.tuning import TUNING_SEED

_TEXTS = ("kind", "suite", "run", "block_run", "at", "role", "status", "fault", "message")
_PLACE = dict.fromkeys(("machine", "commit", "dirty", "package", *COMPARED))
_COUNTS = "correct BIGINT, total BIGINT, blind DOUBLE, nats DOUBLE, blind_nats DOUBLE"
_SCORE = f'STRUCT("length" BIGINT, "group" VARCHAR, {_COUNTS})'
_COLUMNS = {
    **dict.fromkeys(_TEXTS, "VARCHAR"),
    "cell": "JSON",
    "reading": f"STRUCT(samples_ms DOUBLE[], peak_mib DOUBLE, headline VARCHAR, scores {_SCORE}[], text_sha VARCHAR)",
    "environment": f"STRUCT({', '.join(f'{key} VARCHAR' for key in _PLACE)})",
}

# A row an attempt: the figure that its reading comes to, the area of `extrapolation.area`, and all that says with which
# others it belongs. What cannot be read is null, and one sample that is no finite number makes the figure none.
ATTEMPTS = f"""
create table attempt as
with line as (
    select *, try_cast(cell->>'train_length' as bigint) as trained
    from read_ndjson($files, columns = {_COLUMNS}, filename = true, ignore_errors = true)
), tested as (
    select *, list_sort(list_transform(
        list_filter(reading.scores, lambda one:
            one."group" = reading.headline and one."length" >= trained and one.total > 0 and one.blind < 1),
        lambda one: {{tokens: one."length", score: coalesce(1 - one.nats / one.total / one.blind_nats,
            (one.correct / one.total - one.blind) / (1 - one.blind))}})) as curve
    from line
)
select
    filename, kind, role, "at" as moment, suite, run, block_run, status, coalesce(reading.text_sha, '') as text,
    case status when 'ok' then {{status: 'missing', fault: '', message: 'not tested at the training length'}}
        else {{status: status, fault: coalesce(fault, ''), message: coalesce(message, '')}} end as reason,
    cell->>'encoding' as encoding, (cell->'versions')::varchar as versions, try_cast(cell->>'seed' as bigint) as seed,
    json_merge_patch(cell, '{{"encoding": null, "versions": null, "seed": null}}')::varchar as shape,
    environment.machine, coalesce(environment.commit, '') as commit, coalesce(environment.dirty, '') as dirty,
    coalesce(environment.package, '') as package,
    [{", ".join(f"coalesce(environment.{key}, '')" for key in COMPARED)}] as hardware,
    case when status = 'ok' then coalesce(
        list_median(reading.samples_ms) + 0 * list_sum(reading.samples_ms),
        reading.peak_mib,
        case when curve[1].tokens = trained then curve[1].score end
    ) end as value,
    case when status = 'ok' and curve[1].tokens = trained and len(curve) > 1 then list_sum(list_transform(
        range(2, len(curve) + 1),
        lambda i: log2(curve[i].tokens / curve[i - 1].tokens) * (curve[i].score + curve[i - 1].score) / 2
    )) / log2(curve[-1].tokens / curve[1].tokens) end as area
from tested
"""

BROKEN = """
select distinct filename from attempt where kind is null
    or (kind = 'record' and suite || run || block_run || moment || status || encoding || versions || machine is null)
    or not isfinite(value) or (status = 'ok' and value is null)
"""

SHAPES = "select shape, any_value(filename) from attempt where kind = 'record' group by shape order by shape"

NAMES = "select encoding, versions, count(*) from attempt where kind = 'record' group by all order by all"

PLACES = """
create table place as
select row_number() over (order by hardware) as place, hardware from (select distinct hardware from attempt)
"""

SOURCES = """
create table source as
select row_number() over (order by origin, machine, run, commit, dirty, package) as source, * from (
    select distinct origin, label, machine, run, commit, dirty, package
    from attempt join file using (filename) where kind = 'record')
"""

# The same attempt in two places counts once. Of one machine and origin the latest run that tried a cell speaks for it.
COUNTED = f"""
create table counted as
with known as (
    select setting, name, seed, source, origin, source.machine, source.run, suite, block_run, moment, value, area,
        reason,
        case when seed is null then place else 0 end as place, case when seed is null then suite else text end as part
    from attempt join shape using (shape) join named using (encoding, versions) join place using (hardware)
        join file using (filename) join source using (origin, machine, run, commit, dirty, package)
    where kind = 'record' and role = 'member' and seed is distinct from {TUNING_SEED}
), once as (
    select * from known qualify row_number() over (
        partition by setting, name, seed, machine, run, block_run, moment order by origin) = 1
), latest as (
    select * from once qualify run = first_value(run) over (
        partition by setting, name, seed, place, suite, origin, machine order by moment desc, run)
)
select *, coalesce(seed, dense_rank() over (order by source, block_run)) as unit from latest
"""

# A row a seed or a process of one encoding on one board. Lists are sorted: the same records give the same bytes.
UNITS = """
create table unit as
select place, part, setting, name, unit, list_avg(list(value order by value)) as value,
    list_avg(list(area order by area)) as area, count(*) as records, list(distinct source) as sources,
    arg_max(reason, moment || block_run) as last
from counted group by all
"""

BOARDS = """
select place, part, setting, coalesce(list(distinct name order by name) filter (value is not null), []) as measured,
    list(distinct name order by name) as tried
from unit group by all order by all
"""

MEMBERS = """
select place, part, setting, name,
    map_from_entries(list((unit, value) order by unit) filter (value is not null)) as figures,
    map_from_entries(list((unit, area) order by unit) filter (area is not null)) as areas,
    list(unit order by unit) as tried,
    list((unit, last.status, last.fault, last.message) order by unit) filter (value is null) as lost,
    sum(records)::bigint as records, list_sort(list_distinct(flatten(list(sources)))) as sources
from unit semi join wanted using (place, part, setting) group by all order by all
"""

HARDWARE = "select place, hardware from place"

RUNS = """
select source, label, source.machine, source.run, commit, dirty = 'true', package, count(unit)
from source left join counted using (source) group by all order by source
"""
