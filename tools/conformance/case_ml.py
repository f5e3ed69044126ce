"""Cases of ai.onnx.ml."""
import numpy as np
from onnx import TensorProto, helper

from case import ELEMENTS, Case, ml_case, model_of, real, rng

F, I, S, D = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.DOUBLE


def texts(*words):
    return np.array(words, dtype=object)


def features():
    x = real(rng("ml features"), 5, 3)
    yield ml_case("array_feature_extractor", "ArrayFeatureExtractor",
                  {"x": x, "at": np.array([2, 0], np.int64)}, {"y": F})
    yield ml_case("array_feature_extractor_vector", "ArrayFeatureExtractor",
                  {"x": x[0], "at": np.array([[1, 1, 2]], np.int64)}, {"y": F})
    yield ml_case("binarizer", "Binarizer", {"x": x}, {"y": F}, threshold=0.25)
    yield ml_case("scaler", "Scaler", {"x": x}, {"y": F}, offset=[0.5, -1.0, 2.0], scale=[2.0, 0.5, 3.0])
    yield ml_case("scaler_integers", "Scaler", {"x": np.arange(6).reshape(2, 3)}, {"y": F}, offset=[1.0], scale=[0.5])
    with_zeros = np.vstack([x, np.zeros((1, 3), np.float32)])
    for norm in ("MAX", "L1", "L2"):
        yield ml_case(f"normalizer_{norm.lower()}", "Normalizer", {"x": with_zeros if norm != "L2" else x}, {"y": F}, norm=norm)
    holes = x.copy()
    holes[1, 2] = holes[3, 0] = np.nan
    yield ml_case("imputer_nan", "Imputer", {"x": holes}, {"y": F}, imputed_value_floats=[1.0, 2.0, 3.0],
                  replaced_value_float=float("nan"))
    yield ml_case("imputer_integers", "Imputer", {"x": np.array([[1, -1], [-1, 4]], np.int64)}, {"y": I},
                  imputed_value_int64s=[7], replaced_value_int64=-1)
    yield ml_case("feature_vectorizer", "FeatureVectorizer", {"a": x, "b": x[:, :2] * 2}, {"y": F}, version=1,
                  inputdimensions=[3, 2])


def labels():
    words = texts("b", "a", "z", "c")
    yield ml_case("label_encoder_texts", "LabelEncoder", {"x": words}, {"y": I}, version=2,
                  keys_strings=["a", "b", "c"], values_int64s=[10, 20, 30], default_int64=-5)
    yield ml_case("label_encoder_numbers", "LabelEncoder", {"x": np.array([[3, 1], [2, 9]], np.int64)}, {"y": S},
                  version=2, keys_int64s=[1, 2, 3], values_strings=["one", "two", "three"], default_string="many")
    # NaN is a valid key by definition; ONNX Runtime does not find it.
    case = ml_case("label_encoder_reals", "LabelEncoder", {"x": np.array([0.5, np.nan, 1.5], np.float32)}, {"y": F},
                   version=2, keys_floats=[0.5, float("nan")], values_floats=[1.0, 2.0], default_float=9.0)
    case.expected = [np.array([1, 2, 9], np.float32)]
    yield case
    yield ml_case("label_encoder_tensors", "LabelEncoder", {"x": words}, {"y": TensorProto.INT16}, version=4,
                  keys_tensor=helper.make_tensor("k", S, (3,), [b"a", b"b", b"c"]),
                  values_tensor=helper.make_tensor("v", TensorProto.INT16, (3,), [0, 1, 2]),
                  default_tensor=helper.make_tensor("d", TensorProto.INT16, (1,), [42]))
    yield ml_case("label_encoder_first", "LabelEncoder", {"x": words}, {"y": I}, version=1,
                  classes_strings=["a", "b", "c"], default_int64=-3)
    yield ml_case("category_mapper", "CategoryMapper", {"x": words}, {"y": I}, version=1, cats_strings=["a", "b"],
                  cats_int64s=[4, 5], default_int64=-1)
    yield ml_case("category_mapper_numbers", "CategoryMapper", {"x": np.array([5, 4, 3], np.int64)}, {"y": S}, version=1,
                  cats_strings=["a", "b"], cats_int64s=[4, 5], default_string="none")
    yield ml_case("one_hot_encoder_texts", "OneHotEncoder", {"x": words.reshape(2, 2)}, {"y": F}, version=1,
                  cats_strings=["a", "b", "c"])
    yield ml_case("one_hot_encoder_numbers", "OneHotEncoder", {"x": np.array([3, 1, 8], np.int64)}, {"y": F}, version=1,
                  cats_int64s=[1, 2, 3])


def linear():
    generator = rng("ml linear")
    x = real(generator, 6, 4)
    weights = [float(v) for v in real(generator, 12)]
    for transform in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        yield ml_case(f"linear_classifier_{transform.lower()}", "LinearClassifier", {"x": x}, {"label": I, "scores": F},
                      version=1, coefficients=weights, intercepts=[0.1, -0.2, 0.3], classlabels_ints=[7, 8, 9],
                      post_transform=transform)
    yield ml_case("linear_classifier_texts", "LinearClassifier", {"x": x}, {"label": S, "scores": F}, version=1,
                  coefficients=weights[:8], intercepts=[0.1, -0.2], classlabels_strings=["no", "yes"],
                  post_transform="LOGISTIC")
    yield ml_case("linear_classifier_one_column", "LinearClassifier", {"x": x}, {"label": I, "scores": F}, version=1,
                  coefficients=weights[:4], intercepts=[0.25], classlabels_ints=[3, 5])
    yield ml_case("linear_classifier_one_column_logistic", "LinearClassifier", {"x": x}, {"label": I, "scores": F}, version=1,
                  coefficients=weights[:4], intercepts=[0.25], classlabels_ints=[3, 5], post_transform="LOGISTIC")
    yield ml_case("linear_regressor", "LinearRegressor", {"x": x}, {"y": F}, version=1, coefficients=weights[:8],
                  intercepts=[0.5, -0.5], targets=2)
    yield ml_case("linear_regressor_probit", "LinearRegressor", {"x": np.array([[0.2], [0.5], [0.93]], np.float32)},
                  {"y": F}, version=1, coefficients=[1.0], intercepts=[0.0], targets=1, post_transform="PROBIT")


def support_vectors():
    generator = rng("ml svm")
    x = real(generator, 6, 3)
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        yield ml_case(f"svm_regressor_{kernel.lower()}", "SVMRegressor", {"x": x}, {"y": F}, version=1,
                      kernel_type=kernel, kernel_params=[0.5, 0.25, 2.0], n_supports=4,
                      support_vectors=[float(v) for v in real(generator, 12)],
                      coefficients=[float(v) for v in real(generator, 4)], rho=[0.125])
    yield ml_case("svm_regressor_one_class", "SVMRegressor", {"x": x}, {"y": F}, version=1, kernel_type="RBF",
                  kernel_params=[0.5, 0.0, 3.0], n_supports=4, support_vectors=[float(v) for v in real(generator, 12)],
                  coefficients=[0.5, 0.25, 0.75, 1.0], rho=[-0.9], one_class=1)
    three = dict(kernel_type="RBF", kernel_params=[0.5, 0.0, 3.0], vectors_per_class=[2, 1, 2],
                 support_vectors=[float(v) for v in real(generator, 15)],
                 coefficients=[float(v) for v in real(generator, 10)], rho=[0.1, -0.2, 0.05], classlabels_ints=[4, 5, 6])
    yield ml_case("svm_classifier_votes", "SVMClassifier", {"x": x}, {"label": I, "scores": F}, version=1, **three)
    yield ml_case("svm_classifier_shares", "SVMClassifier", {"x": x}, {"label": I, "scores": F}, version=1,
                  prob_a=[-1.5, -2.0, -1.0], prob_b=[0.1, 0.0, -0.1], **three)
    two = dict(kernel_type="LINEAR", kernel_params=[0.0, 0.0, 3.0], vectors_per_class=[2, 2], support_vectors=[float(v) for v in real(generator, 12)],
               coefficients=[1.0, 0.5, -0.75, -0.5], rho=[0.1], classlabels_strings=["no", "yes"])
    yield ml_case("svm_classifier_two", "SVMClassifier", {"x": x}, {"label": S, "scores": F}, version=1, **two)
    yield ml_case("svm_classifier_linear", "SVMClassifier", {"x": x}, {"label": I, "scores": F}, version=1,
                  kernel_type="LINEAR", kernel_params=[0.0, 0.0, 3.0], coefficients=[float(v) for v in real(generator, 9)], rho=[0.1],
                  classlabels_ints=[1, 2, 3])


def grown(generator, trees, depth, features, ids, modes=("BRANCH_LEQ",), missing=False):
    """Returns random trees as the attribute lists of TreeEnsembleRegressor and -Classifier."""
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                             "missing_value_tracks_true")}
    weights = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree, level, counter):
        node = counter[0]
        counter[0] += 1
        row = len(nodes["nodeids"])
        is_leaf = level == depth or (level > 0 and generator.rand() < 0.25)
        nodes["treeids"].append(tree)
        nodes["nodeids"].append(node)
        nodes["featureids"].append(0 if is_leaf else int(generator.randint(features)))
        nodes["values"].append(0.0 if is_leaf else float(np.float32(generator.standard_normal())))
        nodes["modes"].append("LEAF" if is_leaf else modes[generator.randint(len(modes))])
        nodes["truenodeids"].append(0)
        nodes["falsenodeids"].append(0)
        nodes["missing_value_tracks_true"].append(int(missing and not is_leaf and generator.rand() < 0.5))
        if is_leaf:
            for target in ids:
                weights["treeids"].append(tree)
                weights["nodeids"].append(node)
                weights["ids"].append(target)
                weights["weights"].append(float(np.float32(generator.rand() if ids == [0, 1, 2] else generator.standard_normal())))
            return node
        nodes["truenodeids"][row] = grow(tree, level + 1, counter)
        nodes["falsenodeids"][row] = grow(tree, level + 1, counter)
        return node

    for tree in range(trees):
        grow(tree, 0, [0])
    return {"nodes_" + k: v for k, v in nodes.items()}, weights


def trees():
    generator = rng("ml trees")
    x = real(generator, 7, 4)
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        nodes, weights = grown(generator, 3, 4, 4, [0, 1])
        yield ml_case(f"tree_regressor_{aggregate.lower()}", "TreeEnsembleRegressor", {"x": x}, {"y": F}, n_targets=2,
                      aggregate_function=aggregate, base_values=[0.5, -0.5], **nodes,
                      **{"target_" + k: v for k, v in weights.items()})
    nodes, weights = grown(generator, 4, 5, 4, [0], modes=("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"))
    yield ml_case("tree_regressor_modes", "TreeEnsembleRegressor", {"x": x}, {"y": F}, n_targets=1, **nodes,
                  **{"target_" + k: v for k, v in weights.items()})
    holes = x.copy()
    holes[::2, 1] = np.nan
    holes[1, :] = np.nan
    nodes, weights = grown(generator, 4, 4, 4, [0], missing=True)
    yield ml_case("tree_regressor_missing", "TreeEnsembleRegressor", {"x": holes}, {"y": F}, n_targets=1, **nodes,
                  **{"target_" + k: v for k, v in weights.items()})
    for transform in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        nodes, weights = grown(generator, 3, 3, 4, [0, 1, 2])
        yield ml_case(f"tree_classifier_{transform.lower()}", "TreeEnsembleClassifier", {"x": x},
                      {"label": I, "scores": F}, classlabels_int64s=[5, 6, 7], post_transform=transform, **nodes,
                      **{"class_" + k: v for k, v in weights.items()})
    for transform in ("NONE", "LOGISTIC"):
        for sign in ("share", "margin"):
            nodes, weights = grown(generator, 3, 3, 4, [0])
            if sign == "share":
                weights["weights"] = [abs(w) / 4 for w in weights["weights"]]
            yield ml_case(f"tree_classifier_two_{sign}_{transform.lower()}", "TreeEnsembleClassifier", {"x": x},
                          {"label": S, "scores": F}, classlabels_strings=["no", "yes"], post_transform=transform, **nodes,
                          **{"class_" + k: v for k, v in weights.items()})
    nodes, weights = grown(generator, 3, 3, 4, [0, 1])
    for k in range(0, len(weights["weights"]), 2):
        weights["weights"][k + 1] = -weights["weights"][k]
    yield ml_case("tree_classifier_two_columns", "TreeEnsembleClassifier", {"x": x}, {"label": I, "scores": F},
                  classlabels_int64s=[0, 1], **nodes, **{"class_" + k: v for k, v in weights.items()})

    def tensor(name, element, values):
        return helper.make_tensor(name, element, (len(values),), values)

    yield ml_case("tree_ensemble", "TreeEnsemble", {"x": np.array([[1.2, 3.4], [-0.12, 1.66], [4.14, 1.77]])}, {"y": D},
                  version=5, n_targets=2, aggregate_function=1, post_transform=0, tree_roots=[0],
                  nodes_modes=tensor("m", TensorProto.UINT8, [0, 0, 0]), nodes_featureids=[0, 0, 0],
                  nodes_splits=tensor("s", D, [3.14, 1.2, 4.2]), nodes_truenodeids=[1, 0, 1], nodes_trueleafs=[0, 1, 1],
                  nodes_falsenodeids=[2, 2, 3], nodes_falseleafs=[0, 1, 1], leaf_targetids=[0, 1, 0, 1],
                  leaf_weights=tensor("w", D, [5.23, 12.12, -12.23, 7.21]))
    yield ml_case("tree_ensemble_members", "TreeEnsemble",
                  {"x": np.array([[1.2], [3.4], [-0.12], [np.nan], [12], [7]], np.float32)}, {"y": F}, version=5,
                  n_targets=4, aggregate_function=1, post_transform=0, tree_roots=[0],
                  membership_values=tensor("v", F, [1.2, 3.7, 8, 9, float("nan"), 12, 7, float("nan")]),
                  nodes_modes=tensor("m", TensorProto.UINT8, [0, 6, 6]), nodes_featureids=[0, 0, 0],
                  nodes_splits=tensor("s", F, [11, 232344.0, float("nan")]), nodes_truenodeids=[1, 0, 1],
                  nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[2, 2, 3], nodes_falseleafs=[1, 0, 1],
                  leaf_targetids=[0, 1, 2, 3], leaf_weights=tensor("w", F, [1, 10, 1000, 100]))


def maps():
    x = real(rng("ml maps"), 3, 2)
    node = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"])
    model = model_of([node], {"x": x}, {"y": None}, ml=1)
    value = model.graph.output[0].type.sequence_type.elem_type.map_type
    value.key_type = S
    value.value_type.tensor_type.elem_type = F
    # A list of maps is compared as the matrix of its values.
    yield Case("ml_zip_map", model, {"x": x}, [x])

    # A map as an input is two lists, its keys and its values.
    def with_map(name, op, keys, values, result, expected, **attrs):
        node = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attrs)
        model = model_of([node], {"x": keys}, {"y": result}, ml=1)
        given = model.graph.input[0].type.map_type
        given.key_type = S if keys.dtype == object else TensorProto.INT64
        given.value_type.tensor_type.elem_type = S if values.dtype == object else ELEMENTS[str(values.dtype)]
        return Case(f"ml_{name}", model, {"x.keys": keys, "x.values": values}, [expected])

    words, weights = np.array(["b", "z", "a"], object), np.array([2.5, 9, -1], np.float32)
    yield with_map("dict_vectorizer_texts", "DictVectorizer", words, weights, F, np.array([[-1, 2.5, 0]], np.float32),
                   string_vocabulary=["a", "b", "c"])
    numbers = np.array([30, 10, 20], np.int64)
    yield with_map("dict_vectorizer_numbers", "DictVectorizer", numbers, weights, F, np.array([[9, 0, 2.5]], np.float32),
                   int64_vocabulary=[10, 11, 30])
    yield with_map("cast_map_dense", "CastMap", numbers, weights, TensorProto.INT64, np.array([[9, -1, 2]], np.int64),
                   cast_to="TO_INT64", map_form="DENSE")
    places = np.array([3, 1], np.int64)
    texts = np.array(["2.5", "-4"], object)
    yield with_map("cast_map_sparse", "CastMap", places, weights[:2], F, np.array([[0, 9, 0, 2.5, 0]], np.float32),
                   cast_to="TO_FLOAT", map_form="SPARSE", max_map=5)
    yield with_map("cast_map_texts", "CastMap", places, texts, F, np.array([[-4, 2.5]], np.float32), cast_to="TO_FLOAT")


def cases():
    for family in (features, labels, linear, support_vectors, trees, maps):
        yield from family()
