"""The verbs, and what doors need to show their answers: one set of names for every door.

Names are loaded when they are asked for, so that asking for help costs nothing. A verb that
needs defaults stands in `verbs`; every other name is the function of the study or room itself.
"""

from typing import TYPE_CHECKING

from gpuplan.api.presenter import Presenter
from gpuplan.domain.result import show_with
from gpuplan.lazy import lazy_names

if TYPE_CHECKING:
    from gpuplan.api.measuring import calibrate, probe
    from gpuplan.api.pages import (
        charts_html,
        charts_png,
        plan_page,
        report,
        report_charts,
        svg_png,
    )
    from gpuplan.api.verbs import (
        catalog,
        check,
        diagnose,
        diff,
        plan,
        scenario,
        training_run,
        validate,
    )
    from gpuplan.diagnose.score import score
    from gpuplan.inputs.plan_file import read_plan
    from gpuplan.inputs.plan_file import read_plan as explain
    from gpuplan.inputs.scenario.read import read_scenario
    from gpuplan.inputs.scenario.template import scenario_template
    from gpuplan.inputs.schema.reference import scenario_schema
    from gpuplan.inputs.traces.columns import column_map
    from gpuplan.inputs.traces.read import read_trace
    from gpuplan.pipeline.actual import diff_costs
    from gpuplan.pipeline.catalog import check as catalog_check
    from gpuplan.pipeline.catalog import findings_sheet
    from gpuplan.pipeline.catalog import list_items as catalog_list
    from gpuplan.pipeline.catalog import overlay as catalog_overlay
    from gpuplan.pipeline.catalog import show_item as catalog_show
    from gpuplan.pipeline.design import design
    from gpuplan.pipeline.diagnose import diagnose_text, learn
    from gpuplan.pipeline.plan import what_if
    from gpuplan.pipeline.replan import replan_files as replan
    from gpuplan.pipeline.replan import replan_measured
    from gpuplan.pipeline.saved import purchases, render, verify
    from gpuplan.pipeline.top import live_frame as top_live
    from gpuplan.pipeline.top import recorded_frames as top_frames
    from gpuplan.pipeline.trace import trace_sheet
    from gpuplan.pipeline.update import update as catalog_update
    from gpuplan.pipeline.watch import look as watch_look
    from gpuplan.report.catalog.sheets import update_sheet
    from gpuplan.report.charts.simulation import curve_charts, fleet_charts, simulate_charts
    from gpuplan.report.charts.text import charts_text
    from gpuplan.report.cluster.drawing import cluster_page, cluster_svg
    from gpuplan.report.cluster.file import cluster_text
    from gpuplan.report.cluster.plan import cluster_plan_sheet
    from gpuplan.report.cluster.sheet import cluster_sheet, eta_sheet, job_columns
    from gpuplan.report.lessons import learn_sheet
    from gpuplan.report.plan.answer import plan_sheet
    from gpuplan.report.plan.certificate import verified_sheet
    from gpuplan.report.plan.comparison import explain_sheet
    from gpuplan.report.plan.difference import actual_sheet, diff_sheet, replan_sheet
    from gpuplan.report.plan.document import (
        description_lines,
        description_sheet,
        plan_text,
        scenario_sheet,
        scenario_text,
    )
    from gpuplan.report.plan.probing import probe_sheet
    from gpuplan.report.prediction.fit import fit_sheet, survey_sheet
    from gpuplan.report.prediction.serving import (
        network_sheet,
        predict_sheet,
        roofline_sheet,
        runs_sheet,
    )
    from gpuplan.report.prediction.training_run import run_sheet, scale_sheet, training_sheet
    from gpuplan.report.prediction.validation import calibrate_sheet, validate_sheet
    from gpuplan.report.prediction.variants import precisions_sheet, rank_sheet
    from gpuplan.report.simulation.curve import curve_sheet
    from gpuplan.report.simulation.document import passed_columns, request_columns, requests_csv
    from gpuplan.report.simulation.fleet import fleet_sheet
    from gpuplan.report.simulation.run import simulate_sheet
    from gpuplan.report.system.check import change_sheet as check_change_sheet
    from gpuplan.report.system.check import check_sheet
    from gpuplan.report.system.design import design_sheet
    from gpuplan.report.system.files import (
        checklist_text,
        design_checklist,
        design_fabric_svg,
        design_rack_svg,
        statement_csv,
    )
    from gpuplan.report.system.files import fabric_drawing as fabric_svg
    from gpuplan.report.system.files import rack_drawing as rack_svg
    from gpuplan.report.system.ownership import ways_svg as design_ways_svg
    from gpuplan.report.table import sheet_text, to_csv, to_markdown
    from gpuplan.report.telemetry.autoscaler import autoscaler_manifest, reclaim_patches
    from gpuplan.report.telemetry.diagnosis import diagnose_sheet, score_sheet
    from gpuplan.report.telemetry.forecast import forecast_sheet
    from gpuplan.report.telemetry.pictures import telemetry_pictures
    from gpuplan.studies.cluster.eta import eta
    from gpuplan.studies.cluster.planning.plan import plan_cluster
    from gpuplan.studies.cluster.planning.relaxation import refuse_cluster
    from gpuplan.studies.cluster.simulate import rendered as cluster_files
    from gpuplan.studies.cluster.stream import simulate_jobs
    from gpuplan.studies.fit import fit, survey
    from gpuplan.studies.inference.configuration import predict
    from gpuplan.studies.inference.roofline import roofline
    from gpuplan.studies.inference.variants import compare_precisions, rank
    from gpuplan.studies.measured.compare import compare_runs, refuse_regression
    from gpuplan.studies.monitoring.outlook import outlook_of as forecast
    from gpuplan.studies.naming import read_known_scenario
    from gpuplan.studies.networks.predict import predict_network
    from gpuplan.studies.planning.gate import refuse
    from gpuplan.studies.planning.inputs import description_of as describe
    from gpuplan.studies.replay.autoscaled.run import simulate_autoscaled as simulate_fleet
    from gpuplan.studies.replay.clients import clients_load
    from gpuplan.studies.replay.load import drawn_load
    from gpuplan.studies.replay.load import traced_load as trace_load
    from gpuplan.studies.replay.marks import with_lengths, with_priorities, with_shared_prefix
    from gpuplan.studies.replay.network import is_network, simulate_network
    from gpuplan.studies.replay.planned import simulate_planned
    from gpuplan.studies.replay.replicas import prepared as prepare_fleet
    from gpuplan.studies.replay.replicas import simulate, simulate_load, with_gaps
    from gpuplan.studies.replay.scenario import scenario_load, with_described
    from gpuplan.studies.replay.sizes import fleet_curve as simulate_curve
    from gpuplan.studies.replay.stream import drawn_blocks
    from gpuplan.studies.replay.stream import streamed as simulate_stream
    from gpuplan.studies.replay.stream import traced_blocks as trace_blocks
    from gpuplan.studies.system_check.judge import refuse_system
    from gpuplan.studies.training.fit import training_fit
    from gpuplan.studies.training.predict import predict_run as predict_training
    from gpuplan.studies.training.scaling import scale
    from gpuplan.studies.validation.report import predictions_csv
    from gpuplan.studies.validation.report import validate_file as predict_table
    from gpuplan.studies.whole_design.assemble import refuse_design
    from gpuplan.verification.certify import refuse_disagreement, refuse_unverified

__getattr__ = lazy_names(__name__, __file__)
show_with(Presenter())
